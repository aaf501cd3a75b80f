"""Tests docs/papers.md: it is what the data say, its commands parse, and its files exist. Every entry has a sentence or
numbers of its paper, and a report is one file with every entry in it.

    papers_test.py QUOIN_BENCH
"""

import base64
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench" / "plots"))
import papers

PROGRAM = os.path.abspath(sys.argv.pop())


class Papers(unittest.TestCase):
    def setUp(self):
        self.page = (ROOT / "docs" / "papers.md").read_text()
        self.data, self.entries = papers.Published(), papers.entries_of(PROGRAM)

    def test_the_page_is_what_the_data_say(self):
        self.assertEqual(self.page, papers.markdown(PROGRAM),
                         "write it again: bench/plots/papers.py markdown build/bin/quoin-bench > docs/papers.md")

    def test_every_command_of_the_page_parses(self):
        commands = re.findall("`quoin (bench paper [^`]*)`", self.page)
        self.assertGreaterEqual(len(commands), len(self.entries) - 1)
        for command in commands:
            words = shlex.split(command)[1:]
            run = subprocess.run([PROGRAM, *words, *([] if "--list" in words else ["--help"])], capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, command + run.stderr)
            if "--list" not in words:
                self.assertIn(f"Usage: quoin {command} ", run.stdout)

    def test_the_options_of_a_report_are_those_of_its_entries(self):
        for kind, paper, entry in list(self.data.lines):
            if kind != "QUICK":
                continue
            usage = subprocess.run([PROGRAM, "paper", paper, entry, "--help"], capture_output=True, text=True).stdout
            for arguments in self.data.lines[kind, paper, entry][0]:
                for word in arguments.split():
                    if not word.isdigit():
                        self.assertIn(word if word.startswith("--") else "SHAPE", usage, f"{paper} {entry}: {word}")

    def test_every_entry_has_the_word_of_its_paper_and_files_that_exist(self):
        known = {(entry["paper"], entry["entry"]) for entry in self.entries}
        for kind, paper, entry in list(self.data.lines):
            self.assertTrue(not entry or (paper, entry) in known, f"{kind} of {paper} {entry}")
        for key in known:
            self.assertTrue(self.data.sentences("SAYS", *key) or self.data.series(*key)[1], key)
            self.assertTrue(self.data.sentences("DIFFERS", *key), key)
            self.assertTrue(self.data.lines["FILES", *key], key)
            for path in self.data.lines["KEPT", *key] + self.data.lines["FILES", *key]:
                for name in path:
                    self.assertTrue((ROOT / name).exists(), name)

    def test_rows_and_numbers_are_as_many(self):
        for kind, paper, entry in list(self.data.lines):
            if kind == "VALUES":
                (_, *rows), = self.data.lines["ROWS", paper, entry]
                for code, *values in self.data.lines[kind, paper, entry]:
                    self.assertEqual(len(values), len(rows), (paper, entry, code))

    def test_a_report_has_every_entry_and_no_other_file(self):
        with tempfile.TemporaryDirectory() as folder:
            report = papers.Report(PROGRAM, pathlib.Path(folder), quick=True, gpu=False)
            report.runs = lambda: [(run, device, entry) for run, device, entry in papers.Report.runs(report) if run.endswith("table2")]
            report.run_all()
            report.write()
            text = (pathlib.Path(folder) / "report.html").read_text()
            for entry in self.entries:
                self.assertIn(f"<h3 id='{entry['paper']}-{entry['entry']}'>", text)
            self.assertNotRegex(text, r"(src|href)=['\"](?!data:)")
            # Table I: our kept number and the paper's in one row
            self.assertRegex(text, r"1000000x192</td>.*195")

    def test_curves_of_a_cpu_and_a_gpu_are_in_one_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            report = papers.Report(PROGRAM, pathlib.Path(folder), quick=True, gpu=False)
            entry, = (entry for entry in self.entries if (entry["paper"], entry["entry"]) == ("gram-schmidt", "figure10"))
            report.done[entry["run"], "host"] = {"csv": ROOT / "bench" / "results" / "epyc_gram_schmidt_f32.csv"}
            text = report.together(("gram-schmidt", "figure10"), entry)
            self.assertIn("CPU: 4 cores of an AMD EPYC 9005 (Zen 5), GPU: NVIDIA H200", text)
            image = base64.b64decode(re.search("base64,([^\"]*)", text)[1]).decode()
            for code in ("CPU: mgs-blocked", "GPU: mgs-native", "GPU: geqrf-orgqr"):
                self.assertTrue(f">{code}</text>" in image, code)


if __name__ == "__main__":
    unittest.main()
