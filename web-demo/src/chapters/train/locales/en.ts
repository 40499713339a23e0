/** English. The Chinese file has the same shape: the compiler sees to it. */
export const en = {
  eyebrow: "Train",
  title: "It learns while you watch",
  lead: "A tiny GPT starts with random numbers and a page of text. A minute later its letters fall into something like words. Beside it a twin learns without the mask: it sees the answer, its loss falls far lower, and then it cannot write.",
  text: {
    label: "What it reads",
    hint: (characters: string, distinct: string) =>
      `${characters} characters, ${distinct} different ones, each of them a token. The last tenth is kept back to test it.`,
    short: "Too short to learn from: a few hundred characters at least.",
    source: "Herman Melville, Moby-Dick (1851), chapters 1 and 2; in the public domain.",
    reset: "Built-in text",
    file: "A text file …",
    local: "A file can be dropped here; it stays on this machine.",
  },
  size: {
    legend: "Size",
    tiny: "Tiny",
    small: "Small",
    medium: "Medium",
    facts: (layers: number, width: number, context: number) =>
      `${layers} ${layers === 1 ? "layer" : "layers"}, width ${width}, sees ${context} tokens`,
  },
  heads: {
    label: "Heads",
    hint: "At equal width: more heads are narrower ones.",
    value: (n: number, width: number) => `${n} × ${width}`,
  },
  steps: { label: "Steps", hint: "How often the weights are corrected." },
  seed: { label: "Seed", hint: "The same seed, the same run." },
  leak: "Train a twin without the mask, side by side",
  run: {
    start: "Train",
    again: "Train anew",
    stop: "Stop",
    label: "Training",
    progress: "Progress",
    starting: "Starting …",
    stopping: "Stopping …",
    running: (step: number, steps: number) => `Step ${step} of ${steps}`,
    ended: (steps: number) => `${steps} steps made`,
    stopped: (step: number) => `Stopped after step ${step}`,
    facts: (parameters: string, tokens: string) => `${parameters} parameters, ${tokens} tokens per step`,
    speed: (perSecond: string) => `${perSecond} tokens per second`,
    failed: "The trainer says:",
  },
  chart: {
    title: "How surprised it is",
    hint: "The loss: nats per character, lower is better. Dashed is the honest test, on text that was kept back and with the mask on, as it is when a model writes.",
    label: "Loss by step, as lines",
    masked: "with the mask",
    leaking: "without the mask",
    training: "training",
    validation: "honest test",
    before: (heads: number) => `before: ${heads} ${heads === 1 ? "head" : "heads"}`,
    chance: "guessing blindly",
    step: "step",
    none: "–",
    table: "Numbers as a table",
    hide: "Hide the table",
  },
  verdict: {
    leak: (leaking: string, masked: string) => `Without the mask the training loss is ${leaking}, with it ${masked}.`,
    fooled: (leaking: string, masked: string) =>
      `But in the honest test, where the answer is hidden, the twin without the mask has ${leaking}, the model with it ${masked}: it learnt to copy, not to predict.`,
    notYet: "So far the twin has not found out how to copy. It needs more steps.",
    wait: "The verdict comes with the numbers.",
  },
  snapshot: {
    label: "Look at step",
    newest: "newest",
    value: (step: number) => `step ${step}`,
  },
  model: {
    masked: "With the mask",
    leaking: "Without the mask",
    writes: "What it writes",
    prompt: "the beginning that it was given",
    looks: "Where its heads look",
    looksHint: (sentence: string) =>
      `Each square is one head, reading “${sentence}”: rows look at columns. The stronger the colour, the more attention.`,
    map: (layer: number, head: string, step: number) => `Layer ${layer}, head ${head}, after step ${step}`,
    writing: "Both write with the mask: while a text is being written, there is no future to see.",
  },
  terminal: {
    title: "The same in a terminal",
    hint: "With the text in a file, the command makes the same steps of the model with the mask, number by number.",
    copy: "Copy",
    copied: "Copied",
    failed: "Select the text and copy it",
  },
};

export type TrainMessages = typeof en;
