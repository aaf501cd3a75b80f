# Reads what `ctest --output-junit` wrote, DIR/junit.xml, and beside it GoogleTest's DIR/reports/NAME.xml; prints one
# line 'N passed, N failed' over all test cases, with ', N skipped' where there are any.

function attribute(line, key) {
    return match(line, " " key "=\"[^\"]*\"") ? substr(line, RSTART + length(key) + 3, RLENGTH - length(key) - 4) : ""
}

/<testcase / {
    report = FILENAME
    sub(/[^\/]*$/, "reports/" attribute($0, "name") ".xml", report)
    died = attribute($0, "status") == "fail"
    cases = failures = skips = 0
    if (attribute($0, "status") == "notrun") {
        # by its own word, or because there is no program
        getline
        if ($0 ~ /SKIP_RETURN_CODE/) ++skipped; else ++failed
        next
    }
    while ((getline line < report) > 0) {
        if (line ~ /^<testsuites /) {
            cases = attribute(line, "tests")
            failures = attribute(line, "failures")
            skips += attribute(line, "disabled")
        }
        if (line ~ /^ *<skipped/) ++skips
    }
    close(report)
    # No counts (not a GoogleTest program, or it crashed), or an exit code that no case explains (a sanitizer's).
    if (cases == 0 || (died && failures == 0)) {
        cases += 1
        failures += died
    }
    passed += cases - failures - skips
    failed += failures
    skipped += skips
}

END { printf "%d passed, %d failed%s\n", passed, failed, skipped ? ", " skipped " skipped" : "" }
