// Shared by the programs that targets of the Makefile run.

/** Runs `main`. An error becomes one line and exit status 1. */
export async function run(main: () => Promise<void>): Promise<void> {
  try {
    await main();
  } catch (error) {
    console.error(`gateward: ${error instanceof Error ? error.message : error}`);
    process.exitCode = 1;
  }
}
