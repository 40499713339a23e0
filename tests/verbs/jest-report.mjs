/**
 * A Jest reporter that writes what is counted, and nothing else: --json fails on an error that refers to itself, as the cause of a
 * failed program does, and takes all counts with it.
 */
import { writeFileSync } from "node:fs";

export default class Report {
  /**
   * @param {Set<unknown>} _contexts
   * @param {import("@jest/reporters").AggregatedResult} results
   */
  onRunComplete(_contexts, results) {
    const file = process.env.LOOKBACK_JEST_REPORT;
    if (!file) return;
    const { numPassedTests, numFailedTests, numPendingTests, numTodoTests, numRuntimeErrorTestSuites } = results;
    const testResults = results.testResults.map(({ testFilePath, testResults: tests }) => ({
      name: testFilePath,
      assertionResults: tests.map(({ title, fullName, status }) => ({ title, fullName, status })),
    }));
    const report = {
      numPassedTests,
      numFailedTests,
      numPendingTests,
      numTodoTests,
      numRuntimeErrorTestSuites,
      testResults,
    };
    writeFileSync(file, JSON.stringify(report));
  }
}
