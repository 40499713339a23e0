/** The text that is being written, and every other that was: a tree of tokens, in which a text is the way from the root to one of them. */
export interface Candidate {
  readonly id: number;
  readonly text: string;
  readonly probability: number;
}

export interface Token {
  readonly id: number;
  readonly text: string;
  /** The reader's own, not the model's. */
  readonly given: boolean;
  /** Begins a text for the model, and is no word of it. */
  readonly special: boolean;
  /** What it was drawn from; none of a given token. */
  readonly candidates: readonly Candidate[];
  readonly parent: Token | null;
  readonly children: Token[];
  /** How the token before it looks at all up to itself; null while that is not known. */
  row: Float32Array | null;
}

/** A text that was written, from where it leaves an older one. */
export interface Branch {
  /** Its last token. */
  readonly end: Token;
  /** Its first token of its own. */
  readonly start: Token;
  /** Branches that this one grows out of. */
  readonly depth: number;
  readonly text: string;
}

export interface NewToken {
  readonly id: number;
  readonly text: string;
  readonly candidates?: readonly Candidate[];
  readonly row?: Float32Array | null;
  readonly given?: boolean;
  readonly special?: boolean;
}

const makeToken = (token: NewToken, parent: Token | null): Token => ({
  id: token.id,
  text: token.text,
  given: token.given ?? false,
  special: token.special ?? false,
  candidates: token.candidates ?? [],
  row: token.row ?? null,
  parent,
  children: [],
});

export class TokenTree {
  #root = makeToken({ id: -1, text: "" }, null);
  #end = this.#root;

  /** The last token of the text; null while there is none. */
  get end(): Token | null {
    return this.#end === this.#root ? null : this.#end;
  }

  /** The text's tokens in reading order. */
  path(to: Token | null = this.end): Token[] {
    const tokens: Token[] = [];
    for (let token = to; token?.parent; token = token.parent) tokens.push(token);
    return tokens.reverse();
  }

  text(to: Token | null = this.end): string {
    return this.path(to)
      .filter(({ special }) => !special)
      .map(({ text }) => text)
      .join("");
  }

  /** One more token. Where the same one has been written before, the text goes on there. */
  append(token: NewToken): Token {
    const old = this.#end.children.find(({ id }) => id === token.id);
    const next = old ?? makeToken(token, this.#end);
    if (!old) this.#end.children.push(next);
    if (token.row) next.row = token.row;
    this.#end = next;
    return next;
  }

  /** The reader's text: it shares what it can with the text that is there. */
  give(tokens: readonly NewToken[]): void {
    const path = this.path();
    let same = 0;
    while (same < path.length && same < tokens.length && path[same]?.id === tokens[same]?.id) same++;
    this.#end = path[same - 1] ?? this.#root;
    for (const token of tokens.slice(same)) this.append({ ...token, given: true });
  }

  /** The text ends here; what came after it stays in the tree. */
  rewind(to: Token): void {
    this.#end = to;
  }

  clear(): void {
    this.#root = makeToken({ id: -1, text: "" }, null);
    this.#end = this.#root;
  }

  /** Another candidate in the place of a token: from there the text goes on anew. */
  instead(of: Token, candidate: Candidate): Token {
    if (!of.parent) throw new Error("the first token has no alternatives");
    this.#end = of.parent;
    return this.append({ ...candidate, candidates: of.candidates, row: of.row });
  }

  /** Every way through the tree, older branches first, each followed by those that leave it. */
  branches(): Branch[] {
    const found: Branch[] = [];
    const follow = (start: Token, depth: number): void => {
      const words: string[] = [];
      const forks: Token[] = [];
      let token: Token | undefined = start;
      let end = start;
      for (; token; token = token.children[0]) {
        if (!token.special) words.push(token.text);
        forks.push(...token.children.slice(1));
        end = token;
      }
      found.push({ start, end, depth, text: words.join("") });
      for (const fork of forks) follow(fork, depth + 1);
    };
    for (const first of this.#root.children) follow(first, 0);
    return found;
  }

  /** Whether the text passes through (or ends in) a branch's own part, and leaves it nowhere. */
  isCurrent({ start, end }: Branch): boolean {
    for (let token: Token | null = end; token; token = token.parent) {
      if (token === this.#end) return true;
      if (token === start) return false;
    }
    return false;
  }

  /** No row is known any more: other layers or heads are looked at. */
  forgetRows(): void {
    const forget = (token: Token): void => {
      for (let one: Token | undefined = token; one; one = one.children[0]) {
        one.row = null;
        for (const fork of one.children.slice(1)) forget(fork);
      }
    };
    forget(this.#root);
  }
}
