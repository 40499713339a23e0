#!/usr/bin/env node
/** The command `lookback`. Results go to stdout, everything else to stderr; exit code 1: it failed, 2: it was called wrongly, 130: Ctrl-C. */
import { Command, CommanderError } from "commander";
import { VERSION } from "../version.js";
import { addAttend } from "./command-attend.js";
import { addExperiment } from "./command-experiment.js";
import { addGenerate } from "./command-generate.js";
import { addInspect } from "./command-inspect.js";
import { addTrain } from "./command-train.js";
import { printable } from "./printable.js";

const FAILED = 1;
const USAGE = 2;
const INTERRUPTED = 130;

const EXAMPLES = `
Examples:
  $ lookback generate english-prose "Emma was" --temperature 0.8
  $ lookback generate ./gpt2 "Once upon a time"
  $ lookback attend ./gpt2 "The cat sat on the mat" --layer 3 --head 0,5
  $ lookback inspect ./gpt2 --context 512
  $ lookback train moby-dick.txt --out whale
  $ lookback experiment leak

lookback COMMAND --help shows a command's options.`;

function program(): Command {
  const root = new Command("lookback")
    .description("Language models in WebAssembly, and where they look.")
    .version(VERSION)
    .addHelpText("after", EXAMPLES)
    .exitOverride()
    // What is wrong is said once, below.
    .configureOutput({ outputError: () => {} });
  for (const add of [addGenerate, addAttend, addInspect, addTrain, addExperiment])
    add(root)
      .exitOverride()
      .configureOutput({ outputError: () => {} });
  return root;
}

const hintOf = ({ code }: CommanderError): string =>
  code === "commander.unknownOption"
    ? "see lookback --help; a text that begins with - comes last, behind --"
    : "see lookback --help";

function fail(code: number, message: string): void {
  // Names in files can hold anything: one line, and nothing that a terminal obeys.
  console.error(
    `lookback: ${printable(
      message
        .replace(/^error: /, "")
        .trim()
        .replace(/\s+/g, " "),
    )}`,
  );
  process.exitCode = code;
}

async function main(): Promise<void> {
  try {
    await program().parseAsync();
  } catch (error) {
    if (error instanceof CommanderError) {
      // Help and version are no errors; help in place of a command is.
      if (error.code === "commander.help") process.exitCode = USAGE;
      else if (error.exitCode !== 0) fail(USAGE, `${error.message} (${hintOf(error)})`);
      return;
    }
    const { name, message } = error instanceof Error ? error : { name: "", message: String(error) };
    if (name === "AbortError") process.exitCode = INTERRUPTED;
    else fail(FAILED, message);
  }
}

// A reader that has seen enough (`lookback … | head`) is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
  process.exit();
});

void main();
