/** The article in English. The Chinese file has the same shape: the compiler sees to it. */
export const en = {
  title: "Attention that may only look back",
  sections: "Sections",
  figure: {
    role: "matrix",
    label: (name: string, rows: number, cols: number) => `${name}, ${rows} by ${cols}`,
    row: (index: number) => `row ${index}`,
    column: (index: number) => `column ${index}`,
    help: "Arrow keys move from cell to cell, Home and End along the row, Enter keeps a cell, Escape lets it go. The table after the figure holds all numbers.",
    locked: "Kept. Click the cell again or press Esc to let it go.",
    unlocked: "Point at a number, or tap it, to see where it comes from. A click keeps it.",
    showTables: "Numbers as tables",
    hideTables: "Hide the tables",
  },
  sentence: {
    label: "The sentence",
    memory: "The second sentence",
    reset: "Built-in sentence",
    hint: (most: number) => `A token here is a word or a single Chinese character; up to ${most} are read.`,
    empty: "Write at least one word: until then the previous sentence stays.",
  },
  mask: {
    legend: "The mask M",
    causal: "Causal",
    off: "Off",
    inverted: "Inverted",
  },
  hero: {
    eyebrow: "An article whose numbers are alive",
    lead: "A language model writes one word at a time. While it is being trained it has the whole sentence in front of it, and the word it should guess next is standing right there. One triangle of <b class='m inf'>−∞</b> keeps it from copying the answer. Change the sentence, switch the mask, point at any number: all of them come from a WebAssembly engine running in this page.",
    formula:
      "Attention of Q, K and V is the softmax of Q times K transposed, divided by the square root of d, plus M; times V.",
    arcs: "Which words does this word look at?",
    choose: "Choose the word that looks",
    hidden: "hidden",
    legendPast: "looks back",
    legendFuture: "looks ahead",
    legendHidden: "masked",
    separator: ", ",
    shares: (query: string, list: string) => `“${query}” looks at: ${list}.`,
    share: (key: string, percent: string) => `${key} ${percent}`,
    nothing: (query: string) => `“${query}” may look at nothing at all.`,
  },
  words: {
    nav: "Words",
    title: "A sentence becomes numbers",
    body: "<p>Each <b>token</b> is replaced by a vector. In a trained model these vectors are learned; here they are pseudo-random but fixed: the same word always gets the same eight numbers. So the <em>meaning</em> of what follows is arbitrary, but the <em>mechanics</em> are exactly those of GPT.</p>",
    caption: "<b>X</b>, one row per token. Orange is negative, blue is positive.",
    matrix: "X, the token vectors",
    cell: (token: string, col: number) => `Number ${col} of the vector of “${token}”.`,
  },
  projections: {
    nav: "Q, K, V",
    title: "Every word asks, offers and carries",
    body: "<p>Three learned matrices turn each vector into three shorter ones. The <b class='q'>query</b> says what the word is looking for. The <b class='k'>key</b> says what it can be found by. The <b class='v'>value</b> is what it hands over when it is found.</p>",
    legend: "Spell out",
    q: "Query",
    k: "Key",
    v: "Value",
    caption: "Each number of the result is a dot product: a row of <b>X</b> against a column of the weight matrix.",
    weight: { q: "Wq, the query weights", k: "Wk, the key weights", v: "Wv, the value weights" },
    result: { q: "Q, the queries", k: "K, the keys", v: "V, the values" },
    weightCell: (row: number, col: number) =>
      `How much number ${row} of a vector counts for number ${col} of the result.`,
    cell: {
      q: (token: string, col: number) => `Number ${col} of what “${token}” is looking for.`,
      k: (token: string, col: number) => `Number ${col} of what “${token}” can be found by.`,
      v: (token: string, col: number) => `Number ${col} of what “${token}” hands over.`,
    },
  },
  scores: {
    nav: "Scores",
    title: "How well does each question fit each offer?",
    body: "<p>Every <b class='q'>query</b> meets every <b class='k'>key</b> in a dot product: large where the two point the same way. Longer vectors make larger sums, and large sums would make the softmax all-or-nothing, so the scores are divided by <span data-root></span>, with <i>d</i> = 4 the length of a query.</p>",
    caption:
      "Row: who asks. Column: who is asked. Point at a score to see the four products it is made of. The divided scores are called <b>S</b>.",
    kt: "K transposed, the keys",
    raw: "Q times K transposed, the raw scores",
    scaled: "The scores divided by the square root of d",
    rawCell: (query: string, key: string) => `How well the query of “${query}” fits the key of “${key}”.`,
    scaledCell: (query: string, key: string) => `The same score of “${query}” and “${key}”, on a tamer scale.`,
  },
  maskChapter: {
    nav: "Mask",
    title: "The triangle that hides the future",
    body: "<p>Now comes <b class='m'>M</b>. It is 0 on and below the diagonal and <b class='m inf'>−∞</b> above it. Adding 0 changes nothing; adding <span class='inf'>−∞</span> leaves nothing, since the softmax turns it into a weight of exactly 0. So each word sees itself and what came before, and nothing else.</p>",
    caption:
      "<b>S</b> + <b class='m'>M</b>, then the softmax of each row: the attention weights <b>A</b>. Each row of A that sees anything sums to 1.",
    scaled: "The scaled scores",
    bias: "M, the mask to be added",
    masked: "The scores with the mask added",
    weights: "A, the attention weights",
    biasSeen: (query: string, key: string) => `0: “${query}” may look at “${key}”.`,
    biasHidden: (query: string, key: string) => `−∞: “${query}” may not look at “${key}”.`,
    maskedCell: (query: string, key: string) => `The score of “${query}” for “${key}”, with the mask added.`,
    weightCell: (query: string, key: string, percent: string) =>
      `“${query}” gives “${key}” ${percent} of its attention.`,
    nothing: (query: string) =>
      `“${query}” sees no word at all. Its weights are 0 by rule: never NaN, never an average.`,
    lse: "the second number is the log-sum-exp of the row",
    verdict: {
      causal: "No word sees one that comes after it: every weight above the diagonal is exactly 0.",
      single: "With a single word there is no future to hide.",
      off: (count: number) =>
        `The future leaks in: ${count} ${count === 1 ? "weight" : "weights"} above the diagonal ${count === 1 ? "is" : "are"} not 0.`,
      inverted:
        "The mask is the wrong way round, as happens when one library’s “true = hide” meets another’s “true = may look”. Each word sees only what comes after it, not even itself.",
      leak: (query: string, key: string, percent: string) =>
        `“${query}” already sees “${key}”, with ${percent} of its attention.`,
      empty: (query: string) => `“${query}” comes last, sees nothing, and hands on a row of zeros.`,
    },
    cheat: {
      title: "What a model learns when it can peek",
      body: "<p>In training, each word must predict the next. This head was built by hand to cheat: its query simply asks for <em>the position after mine</em>, and copies what it finds. Switch the mask and compare.</p>",
      training: "In training",
      trainingHead: { token: "After", answer: "the answer is", share: "the cheater gives it" },
      writing: "When it has to write",
      writingLead: (token: string) => `Starting from “${token}”, one word at a time:`,
      verdict: {
        causal:
          "Under the causal mask the answer cannot be seen: copying earns nothing, so training never makes such a head and has to find something better.",
        off: "Without the mask the cheater is nearly perfect in training. But when it writes, the next word does not exist yet: there is nothing to copy, and it talks nonsense.",
        inverted:
          "With the inverted mask only the future is visible: perfect cheating in training, and when it writes, it sees nothing at all.",
      },
    },
  },
  output: {
    nav: "Output",
    title: "Mixing what was found",
    body: "<p>The weights say how much of each <b class='v'>value</b> to take. A word’s output is the weighted sum of the values it may see. The first word sees only itself, so its output is its own value, unchanged.</p>",
    caption: "<b>A</b> · <b class='v'>V</b>: each row of the result is a mixture of the rows of V.",
    weights: "A, the attention weights",
    values: "V, the values",
    result: "The output of the head",
    cell: (token: string, col: number) => `Number ${col} of what “${token}” has gathered.`,
  },
  heads: {
    nav: "Heads",
    title: "Several looks at once",
    body: "<p>One head can look for one thing. <b>Multi-head attention</b> splits the width into several heads, each with its own <b class='q'>W<sub>Q</sub></b>, <b class='k'>W<sub>K</sub></b> and <b class='v'>W<sub>V</sub></b>: one may find the subject, another the word just before. With two heads, the first is the very matrix of the chapters above.</p><p>More is not simply better. Eight heads of width 8 are left with one number each, and one number is a poor question: such a model hardly learns. And a number that does not divide the width is no model at all. Try 3.</p>",
    slider: "Heads",
    value: (heads: number, width: string) => `${heads} × ${width}`,
    valueSpoken: (heads: number) => (heads === 1 ? "1 head" : `${heads} heads`),
    caption: "The attention weights of each head, on the same sentence with the same mask.",
    head: (index: number) => `Head ${index}`,
    weights: (index: number) => `Attention weights of head ${index}`,
    cell: (head: number, query: string, key: string, percent: string) =>
      `Head ${head}: “${query}” gives “${key}” ${percent} of its attention.`,
    refused: "The engine refuses:",
    concatBody:
      "<p>What the heads found is laid side by side (<b>concatenated</b>) and mixed once more by <b class='o'>W<sub>O</sub></b>, so that the next layer gets one vector per word again.</p>",
    concatCaption: "Concat · <b class='o'>W<sub>O</sub></b>: the output of the whole layer.",
    concat: "The heads’ outputs side by side",
    concatTitle: "Concat",
    outputWeight: "Wo, the output weights",
    output: "The output of the layer",
    concatCell: (head: number, token: string) => `What head ${head} gathered for “${token}”.`,
    weightCell: (row: number, col: number) =>
      `How much column ${row} of the concatenation counts for number ${col} of the output.`,
    outputCell: (token: string, col: number) =>
      `Number ${col} of the layer’s output for “${token}”: every head has its say.`,
  },
  cross: {
    nav: "Cross",
    title: "Looking into another sentence",
    body: "<p>So far every word looked at its own sentence: <b>self-attention</b>. In <b>cross-attention</b> the <b class='q'>queries</b> come from one sentence, the <b class='k'>keys</b> and <b class='v'>values</b> from another, as when a translator reads the original. The matrix need not be square any more, and nothing in the other sentence is “the future”, so no mask is needed.</p>",
    caption:
      "The same head, the same queries: self-attention looks into its own sentence, cross-attention into the other one.",
    self: "Self-attention",
    cross: "Cross-attention",
    selfName: "Self-attention weights",
    crossName: "Cross-attention weights",
    selfCell: (query: string, key: string, percent: string) =>
      `Self: “${query}” gives “${key}” of its own sentence ${percent}.`,
    crossCell: (query: string, key: string, percent: string) =>
      `Cross: “${query}” gives “${key}” of the other sentence ${percent}.`,
    causal: "Ask for a causal mask here, too",
    causalHint:
      "Which key is “now” for a query of another sentence? Half of the world’s libraries say one thing, half the other. This engine asks back instead of guessing.",
  },
  closing: {
    nav: "Use it",
    title: "The same, in your own program",
    body: "<p>Every number above came from calls like these. The import has no dependencies, and computes the same in Node and in the browser.</p>",
    facts: "This page right now",
    variant: "Engine variant",
    fused: "Multiply-add",
    memory: "Wasm memory",
    objects: "Live objects",
    kib: (amount: string) => `${amount} KiB`,
  },
};

export type ArticleMessages = typeof en;
