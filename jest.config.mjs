/** Tests run against the built dist/, as ES modules: start Node with --experimental-vm-modules (npm test does). */
const shared = {
  testEnvironment: "node",
  extensionsToTreatAsEsm: [".ts"],
  transform: {
    "^.+\\.ts$": [
      "@swc/jest",
      { jsc: { target: "es2022", parser: { syntax: "typescript" } }, module: { type: "es6" }, sourceMaps: "inline" },
    ],
  },
  moduleNameMapper: {
    "^lookback$": "<rootDir>/dist/node.js",
    "^lookback/model$": "<rootDir>/dist/model/node.js",
    "^lookback/models/([\\w-]+)$": "<rootDir>/dist/models/$1.js",
    "^lookback/state-dicts$": "<rootDir>/dist/state-dicts.js",
    "^lookback/view$": "<rootDir>/dist/view/index.js",
    "^lookback/worker$": "<rootDir>/dist/worker/node.js",
    // A test helper may be imported by the name its JavaScript would have.
    "^(\\.{1,2}/.*)\\.js$": ["$1.js", "$1.ts"],
  },
  modulePathIgnorePatterns: [
    "<rootDir>/build/",
    "<rootDir>/tests/nodes/node_modules/",
    "<rootDir>/tests/package/",
    "<rootDir>/tests/frameworks/",
  ],
};

/** @type {import("jest").Config} */
export default {
  projects: [
    { ...shared, displayName: "js", testMatch: ["<rootDir>/tests/js/**/*.test.ts"] },
    { ...shared, displayName: "browser", testMatch: ["<rootDir>/tests/browser/**/*.test.ts"] },
  ],
};
