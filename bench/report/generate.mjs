// `node bench/report/generate.mjs [run directory]`: draws a run's plots into its directory and
// writes docs/performance.md from it; without a directory, from the run that the page names now.
import { runOfPage, writeReport } from "./report.mjs";

await writeReport(process.argv[2] ?? runOfPage());
