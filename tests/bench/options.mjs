/** The command line of the benchmarks. */
import { parseArgs } from "node:util";
import { installedNodes } from "../../bindings/toolchain/nodes.mjs";
import { Advice } from "../../bindings/toolchain/shell.mjs";
import { contestants } from "./contestants/list.mjs";
import { cases } from "./core/workloads.mjs";

const extras = ["memory", "sizes", "start"];

/** @param {string} verb @param {string} more */
const help = (verb, more) => `npm run ${verb} -- [options]

  --quick            few samples: to see that everything works
  --filter WORDS     only cases whose name contains one of the words (comma-separated):
                     ${cases.map(({ id }) => id).join(", ")},
                     ${extras.join(", ")}
  --only WORDS       only contestants whose name contains one of the words:
                     ${contestants.map(({ id }) => id).join(", ")}
${more}  --json FILE        writes the report there as well
  --baseline FILE    compares shares of the ceiling with those of an earlier report
  --help`;

/** @typedef {ReturnType<typeof readOptions>} Options */

const NODE_HELP = "  --node VERSION     22, 24, 26 (default: the newest) or system\n";

/**
 * @param {string[]} args
 * @param {"node" | "browser"} [place]
 */
export function readOptions(args, place = "node") {
  const helpText = place === "node" ? help("bench", NODE_HELP) : help("bench:browser", "");
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: "boolean", default: false },
      filter: { type: "string", default: "" },
      only: { type: "string", default: "" },
      node: { type: "string" },
      json: { type: "string" },
      baseline: { type: "string" },
      help: { type: "boolean", default: false },
    },
  });
  const words = (/** @type {string} */ text) => text.split(",").flatMap((word) => word.trim() || []);
  const named = (/** @type {string} */ text) => {
    const wanted = words(text);
    return (/** @type {string} */ id) => wanted.length === 0 || wanted.some((word) => id.includes(word));
  };
  const isWanted = named(values.filter);
  const chosen = {
    cases: cases.filter(({ id }) => isWanted(id)),
    extras: extras.filter(isWanted),
    contestants: contestants.filter(({ id, role }) => role === "ceiling" || named(values.only)(id)),
  };
  if (chosen.cases.length + chosen.extras.length === 0)
    throw new Advice(`No case is called ${values.filter}.\n\n${helpText}`);
  return { ...values, ...chosen, helpText };
}

/**
 * The program that runs the cases.
 * @param {string | undefined} version
 */
export function nodeProgram(version) {
  const installed = installedNodes();
  if (version === "system") return process.execPath;
  if (version === undefined) return installed.at(-1) ?? process.execPath;
  const found = installed.find((path) => path.includes(`node${version}/`));
  if (!found) throw new Advice(`Node.js ${version} is not in tests/nodes.`);
  return found;
}
