"""The scripts of bench/ on small results: every picture of bench/plots/, and the rows that bench/rivals/pytorch.py add.

    bench_scripts_test.py scripts      without matplotlib or PyTorch
    bench_scripts_test.py pictures     with matplotlib
"""

import json
import os
import sys
import tempfile
import unittest

BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench")
sys.path[:0] = [BENCH, os.path.join(BENCH, "plots"), os.path.join(BENCH, "rivals")]
import bench_csv
import pytorch

HEADER = ("# device: NVIDIA H100 80GB HBM3, driver 580\n# quoin 0.1.0; a GPU; 2026-11-21\n"
          "rows,cols,dtype,op,method,seconds,gflops,limit_fraction,reference,reference_seconds,reference_gflops,ratio,"
          "required_ratio,orthogonality,residual\n")


def line(rows, cols, dtype, op, method, seconds, reference, reference_seconds, required=""):
    flops = bench_csv.flops({"rows": rows, "cols": cols, "op": op})
    return (f"{rows},{cols},{dtype},{op},{method},{seconds},{1e-9 * flops / seconds},0.5,{reference},"
            f"{reference_seconds},{1e-9 * flops / reference_seconds},{reference_seconds / seconds},{required},1e-6,1e-7\n")


def write(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w") as file:
        file.write(text)
    return path


class Scripts(unittest.TestCase):
    def test_flops_are_those_of_the_program(self):
        self.assertEqual(bench_csv.flops({"rows": "10", "cols": "3", "op": "geqrf"}), 2 * 10 * 9 - 18)
        self.assertEqual(bench_csv.flops({"rows": "10", "cols": "3", "op": "thin-qr"}), 2 * (2 * 10 * 9 - 18))
        self.assertEqual(bench_csv.flops({"rows": "3", "cols": "10", "op": "factor"}), 2 * 10 * 9 - 18)

    def test_pytorch_adds_a_row_a_case_in_the_same_columns(self):
        with tempfile.TemporaryDirectory() as directory:
            path = write(directory, "h100_table1.csv", HEADER
                         + line(1000, 192, "f32", "geqrf", "householder", 1e-3, "cusolver", 2e-3, 4)
                         + line(1000, 192, "f32", "geqrf", "householder", 1e-3, "lapack", 9e-3)
                         + line(1000, 192, "f32", "factor", "caqr", 2e-3, "cusolver", 2e-3)
                         + line(2000, 192, "f32", "thin-qr", "tsqr", 2e-3, "cusolver", 2e-3))
            asked = []

            def seconds_of(*case):
                asked.append(case)
                return None if case[0] == (2000, 192) else 5e-3

            before = bench_csv.read(path)
            bench_csv.append(path, pytorch.rows_of_qr(before, seconds_of), "pytorch: 2")
            after = bench_csv.read(path)
            self.assertEqual(asked, [((1000, 192), "f32", "geqrf"), ((2000, 192), "f32", "thin-qr")])
            self.assertEqual(after[:4], before)
            self.assertEqual(len(after), 6)
            for row, of_quoin in zip(after[4:], (before[0], before[2])):
                self.assertEqual(row["reference"], "pytorch")
                self.assertEqual(row["required_ratio"], "")
                self.assertAlmostEqual(float(row["ratio"]), 5e-3 / float(of_quoin["seconds"]))
                self.assertAlmostEqual(float(row["reference_gflops"]) * 5e6, 2 * 1000 * 192**2 - 2 * 192**3 / 3, delta=1e3)
                for column in ("rows", "cols", "dtype", "op", "method", "seconds", "gflops", "orthogonality"):
                    self.assertEqual(row[column], of_quoin[column])


    def test_pytorch_adds_a_row_a_batch(self):
        with tempfile.TemporaryDirectory() as directory:
            header = "count,rows,cols,dtype,op,matrices,seconds,reference,reference_seconds,ratio,orthogonality_ku"
            path = write(directory, "h100_batched.csv", f"{header}\n20,8,3,f32,factor,normal,1e-5,cusolver,1e-3,100,\n"
                         "20,8,3,f32,factor,normal,1e-5,cublas,1e-4,10,\n20,8,3,f32,thin-qr,normal,2e-5,cusolver,2e-3,100,\n"
                         "20,8,3,f32,thin-qr,banded,,,,,0.5\n")
            rows = pytorch.rows_of_qr(bench_csv.read(path), lambda shape, dtype, op: {"geqrf": 4e-5}.get(op))
            bench_csv.append(path, rows, "pytorch: 2")
            self.assertEqual([",".join(row.values()) for row in bench_csv.read(path)[4:]],
                             ["20,8,3,f32,factor,normal,1e-5,pytorch,4e-05,4,"])

    def test_pytorch_adds_a_row_a_route_of_robust_pca(self):
        with tempfile.TemporaryDirectory() as directory:
            path = write(directory, "h100_table2.csv",
                         "# quoin 0.1.0; a GPU\nrows,cols,dtype,code,method,route,iterations,iterations_per_second,"
                         "seconds_to_1e-3,seconds_to_1e-5,residual,rank,objective\n"
                         "110592,100,f32,quoin,alm,qr,26,1200,0.01,0.02,6e-6,45,2000\n"
                         "110592,100,f32,quoin,alm,gram,26,1700,0.01,0.02,6e-6,45,2000\n")
            measured = {"iterations": 26, "iterations_per_second": "140", "residual": "7e-06", "rank": 45,
                        "objective": "2000", "seconds_to_1e-3": "0.1", "seconds_to_1e-5": ""}
            before = bench_csv.read(path)
            bench_csv.append(path, pytorch.rows_of_rpca(before, lambda m, n, route: measured), "pytorch: 2")
            after = bench_csv.read(path)
            self.assertEqual(after[:2], before)
            self.assertEqual([(row["code"], row["rows"], row["method"], row["route"]) for row in after[2:]],
                             [("pytorch", "110592", "alm", "qr"), ("pytorch", "110592", "alm", "svd")])
            self.assertEqual(after[2]["iterations_per_second"], "140")


class Pictures(unittest.TestCase):
    def test_every_picture_is_drawn(self):
        import results

        with tempfile.TemporaryDirectory() as directory:
            write(directory, "h100_batched.csv", HEADER.splitlines()[0]
                  + "\ncount,rows,cols,dtype,op,matrices,seconds,reference,reference_seconds,required_seconds\n"
                  + "".join(f"{count},8,{n},f32,factor,normal,1e-5,{reference},1e-3,{required}\n" for count in (20, 40)
                            for n in (3, 8) for reference, required in (("cusolver", 2e-5), ("cublas", ""))))
            write(directory, "h100_batch_sizes.csv", HEADER.splitlines()[0]
                  + "\ncount,rows,cols,dtype,op,matrices,seconds,reference,reference_seconds,required_seconds\n"
                  + "".join(f"{count},{n},{n},{dtype},factor,normal,{count * n * 1e-7},,,\n" for count in (1, 1000)
                            for n in (8, 32, 128) for dtype in ("f32", "f64")))
            results.main(directory)
            for name in ("batched", "batch_sizes"):
                with open(os.path.join(directory, f"h100_{name}.png"), "rb") as png:
                    self.assertEqual(png.read(8), b"\x89PNG\r\n\x1a\n")
                with open(os.path.join(directory, f"h100_{name}.svg")) as svg:
                    text = svg.read()
                for expected in {"batched": ("V, tau, R", "cuBLAS", "required", "20 of 8", "peak of products"),
                                 "batch_sizes": ("V, tau, R", "1000", "peak of products", "f64")}[name]:
                    self.assertTrue(expected in text, f"{name} lacks {expected}")
                self.assertTrue("H100" in text, name)

    def test_a_timeline_is_drawn(self):
        import timeline

        def span(tid, name, begin, length):
            return {"pid": 1, "tid": tid, "ph": "X", "name": name, "ts": begin, "dur": length}

        rows = [{"pid": 1, "tid": tid, "ph": "M", "name": "thread_name", "args": {"name": name}}
                for tid, name in ((1, "host"), (2, "device, main stream"))]
        spans = [span(2, "update", 500, 2000), span(2, "S", 1000, 500), span(1, "panel", 1500, 1000),
                 span(1, "a <b> & c", 2500, 500)]
        with tempfile.TemporaryDirectory() as directory:
            path = write(directory, "h100.json", json.dumps({"traceEvents": rows + spans}))
            (host, of_host), (device, of_device) = timeline.read(path)
            self.assertEqual((host, device), ("host", "device, main stream"))
            self.assertEqual(of_host, [("panel", 1.0, 2.0, None), ("a <b> & c", 2.0, 2.5, None)])
            self.assertEqual(timeline.depths(of_device), [0, 1])
            self.assertAlmostEqual(timeline.busy(of_device, 0, 2.5), 0.8)
            self.assertAlmostEqual(timeline.busy(of_host, 0.5, 1.5), 0.5)
            timeline.main([path])
            with open(os.path.join(directory, "h100.png"), "rb") as png:
                self.assertEqual(png.read(8), b"\x89PNG\r\n\x1a\n")
            with open(os.path.join(directory, "h100.svg")) as svg:
                text = svg.read()
            for expected in ("device, main stream", "80% busy", "panel", "update", "a &lt;b&gt; &amp; c"):
                self.assertTrue(expected in text, f"the timeline lacks {expected}")
            timeline.main([path, "--from", "1.1", "--to", "1.4", "--title", "300 x 20"])
            with open(os.path.join(directory, "h100.svg")) as svg:
                text = svg.read()
            self.assertFalse("&lt;b&gt;" in text)
            self.assertTrue("300 x 20" in text, "the title")
            two = [{"pid": pid, "tid": 1, "ph": "M", "name": key, "args": {"name": name}}
                   for pid, rank in ((1, "rank 0"), (2, "rank 1")) for key, name in (("process_name", rank), ("thread_name", "host"))]
            two += [{"pid": pid, "tid": 1, "ph": "X", "name": "wait", "ts": 1000 * pid, "dur": 500} for pid in (1, 2)]
            self.assertEqual(timeline.read(write(directory, "ranks.json", json.dumps({"traceEvents": two}))),
                             [("rank 0", [("wait", 0.0, 0.5, None)]), ("rank 1", [("wait", 1.0, 1.5, None)])])
            for text, why in (("{", "not a trace"), ("{}", "not a trace"), ('{"traceEvents": []}', "no spans")):
                with self.assertRaisesRegex(SystemExit, why):
                    timeline.main([write(directory, "bad.json", text)])
            for arguments, why in (([os.path.join(directory, "none.json")], "No such file"),
                                   ([path, "--from", "3", "--to", "2"], "not before")):
                with self.assertRaisesRegex(SystemExit, why):
                    timeline.main(arguments)

    def test_the_runs_out_of_core_are_drawn(self):
        import out_of_core

        columns = ("rows,cols,dtype,method,arithmetic,reorthogonalized,memory_cap,asked_block,block,seconds,predicted_seconds,tflops,"
                   "seconds_in,seconds_out,seconds_products,seconds_panels,hidden,seconds_product_copies,hidden_in_products,"
                   "orthogonality,residual")

        def row(method, arithmetic, block, seconds):
            return (f"1000,1000,f32,{method},{arithmetic},false,{2**30},{block},{block},{seconds},{seconds / 2},{2e-3 / seconds},"
                    f"0.011,0.013,0.017,0.019,0.7,0.023,0.83,5,2e-4\n")

        names = {1: "device, main stream", 2: "host to device", 3: "device to host"}
        events = [{"pid": 1, "tid": tid, "ph": "M", "name": "thread_name", "args": {"name": name}} for tid, name in names.items()]
        # ms; the second run of products is the longer one, and a panel's copies go on beside it
        for tid, name, begin, end, step in (
                (2, "panel in", 0, 2, 0), (1, "panel", 2, 4, 0), (1, "Gram passes", 3, 4, -1), (3, "panel out", 4, 6, 0),
                (2, "A in", 4, 5, 64), (1, "inner product", 5, 6, 64), (3, "R out", 6, 6.5, 64), (1, "panel", 6.5, 8, 64),
                (2, "panel in", 5, 7, 64), (3, "panel out", 8.25, 9.5, 64),
                (2, "A in", 7, 9, 128), (1, "projection", 9, 12, 128), (2, "A in", 9, 10, 192), (1, "projection", 12, 14, 192),
                (3, "A out", 12, 13, 128), (3, "A out", 14, 16, 192), (2, "panel in", 14, 15, 128), (1, "panel", 15, 18, 128),
                (3, "panel out", 18, 20, 128), (2, "A in", 17, 18, 192), (1, "projection", 18, 19, 192), (3, "A out", 20, 21, 192)):
            events.append({"pid": 1, "tid": tid, "ph": "X", "name": name, "ts": 1e3 * begin, "dur": 1e3 * (end - begin),
                           "args": {"step": step}})
        with tempfile.TemporaryDirectory() as directory:
            with self.assertRaisesRegex(SystemExit, "holds no results"):
                out_of_core.main([directory])
            write(directory, "other.csv", HEADER + line(1000, 192, "f32", "geqrf", "householder", 1e-3, "cusolver", 2e-3))
            with self.assertRaisesRegex(SystemExit, "holds no results"):
                out_of_core.main([directory])
            head = "# quoin 0.1.0; NVIDIA H100 80GB HBM3, 132 multiprocessors; memory_bytes 1\n" + columns + "\n"
            write(directory, "a.csv", head + row("recursive", "fp16", 64, 0.02) + row("blocking", "fp16", 64, 0.05))
            write(directory, "b.csv", head + row("recursive", "fp16", 128, 0.02) + row("blocking", "fp16", 128, 0.03)
                  + row("householder", "corrected", 128, 0.1))
            path = write(directory, "a.json.recursive-fp16.json", json.dumps({"traceEvents": events}))
            write(directory, "a.json.blocking-fp16.json", json.dumps({"traceEvents": events}))

            import timeline
            rows = out_of_core.outermost(timeline.read(path))
            self.assertEqual([span.name for span in rows[0][1]], ["panel", "inner product", "panel", "projection", "projection", "panel",
                                                                     "projection"])
            self.assertEqual(out_of_core.largest_product(rows), (7, 16, 128))
            self.assertIsNone(out_of_core.largest_product([("device, main stream", rows[0][1][:1])]))
            self.assertEqual([out_of_core.kind(name) for name in ("panel out", "A in", "Q in", "R out", "projection", "update")],
                             ["panel", "A₂", "Q₁", "R₁₂", "both products", "update"])

            (a, b), device = out_of_core.read(directory)
            self.assertEqual((device, [row["seconds"] for row in a.rows.values()], set(a.traces), b.traces),
                             ("H100 80GB HBM3", ["0.02", "0.05"], {"recursive-fp16", "blocking-fp16"}, {}))
            out_of_core.main([directory, "--out", os.path.join(directory, "ooc")])
            for name in ("products", "runs"):
                with open(os.path.join(directory, f"ooc_1000_f32_1GiB_64_{name}.png"), "rb") as png:
                    self.assertEqual(png.read(8), b"\x89PNG\r\n\x1a\n")

            # one file, with and without an optimization
            head = head.replace(columns, columns + ",schedule")
            path = write(directory, "c.csv", head + row("recursive", "fp16", 64, 0.02)[:-1] + ",\n"
                         + row("recursive", "fp16", 64, 0.05)[:-1] + ",synchronous\n")
            routes = {"recursive-fp16", "recursive-fp16-synchronous"}
            for route in routes:
                write(directory, f"c.json.{route}.json", json.dumps({"traceEvents": events}))
            (c,), _ = out_of_core.read(path)
            self.assertEqual((set(c.rows), set(c.traces)), (routes, routes))
            out_of_core.main([path, "--out", os.path.join(directory, "one")])
            self.assertTrue(os.path.exists(os.path.join(directory, "one_1000_f32_1GiB_64_products.png")))

    def test_kernels_are_drawn_as_maps(self):
        import papers

        rows = [{"code": code, "access": access, "nx": nx, "ny": ny, "columns_left": left, "dtype": "f32", "gflops": rate, "seconds": seconds}
                for code, access, nx, ny, left, rate, seconds in (
                    ("orthogonalization", "direct", "32", "1", "-1", "417.2", "1"), ("orthogonalization", "direct", "64", "1", "-1", "600", "1"),
                    ("orthogonalization", "shared", "32", "2", "-1", "250", "1"), ("dot-products", "direct", "32", "1", "-1", "99", "1"),
                    ("orthogonalization", "direct", "32", "8", "16", "1", "8e-6"), ("orthogonalization", "direct", "64", "8", "16", "1", "2e-6"))]
        maps = papers.kernel_maps("orthogonalization")(rows)
        self.assertEqual(maps, {"direct access": {(32, 1): (417.2, "417"), (64, 1): (600, "600")}, "through shared memory": {(32, 2): (250, "250")}})
        (title, cells), = papers.step_maps(rows).items()
        self.assertEqual([(place, round(colour, 9), text) for place, (colour, text) in cells.items()], [((16, "32×8"), 4, "8"), ((16, "64×8"), 1, "2")])
        svg = papers.heat_maps(maps, "NX", "NY", "GFLOP/s").decode()
        for words in ("direct access", "through shared memory", ">417<", ">250<", ">GFLOP/s<"):
            self.assertIn(words, svg)

    def test_an_empty_folder_is_an_error(self):
        import results

        with tempfile.TemporaryDirectory() as directory, self.assertRaisesRegex(SystemExit, "holds no"):
            results.main(directory)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], defaultTest=[sys.argv.pop(1).capitalize()])
