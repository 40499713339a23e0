/**
 * Elements that show one text: those whose `for` names the same element by its id, and that element. They take its data, and follow
 * what a reader does in any of them. Any of them may be there first.
 */

interface Linked extends HTMLElement {
  /** The id of the element whose data it shows. */
  readonly htmlFor: string;
}

/** What follows, by the document or shadow root in which ids mean something. */
const followers = new WeakMap<Node, Set<Linked>>();
const roots = new WeakMap<Linked, Node>();

export function join(element: Linked): void {
  const root = element.getRootNode();
  const known = followers.get(root) ?? new Set();
  followers.set(root, known.add(element));
  roots.set(element, root);
}

export function leave(element: Linked): void {
  const root = roots.get(element);
  if (root) followers.get(root)?.delete(element);
}

const named = (root: Node, id: string): Element | null =>
  id === "" ? null : (root as Document | ShadowRoot).getElementById(id);

/** The element that it takes its data from. */
export function leaderOf(element: Linked): Element | null {
  const root = roots.get(element);
  const leader = root && named(root, element.htmlFor);
  return leader === element ? null : (leader ?? null);
}

export function followersOf(element: Linked): Linked[] {
  const all = [...(followers.get(roots.get(element) ?? element) ?? [])];
  return element.id === "" ? [] : all.filter((each) => each !== element && each.htmlFor === element.id);
}

/** All that show the same text, itself left out. */
export function partnersOf(element: Linked): Element[] {
  const leader = leaderOf(element) ?? element;
  const partners = new Set([leader, ...followersOf(leader as Linked)]);
  partners.delete(element);
  return [...partners];
}
