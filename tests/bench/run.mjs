/** npm run bench: everything in one run, as one table, and with --json FILE as one file. */
import { runCaseApart } from "./node/child.mjs";
import { memory, sizes, start } from "./node/extras.mjs";
import { engineOf } from "./node/machine.mjs";
import { nodeProgram, readOptions } from "./options.mjs";
import { asProgram, wholeRun } from "./whole-run.mjs";

await asProgram(async () => {
  const options = readOptions(process.argv.slice(2));
  if (options.help) return console.log(options.helpText);
  const node = nodeProgram(options.node);
  const { quick } = options;
  await wholeRun(options, {
    engine: engineOf(node),
    runCase: (task) => runCaseApart(node, task),
    extras: { memory: () => memory(node, quick), sizes, start: () => start(node, quick) },
  });
});
