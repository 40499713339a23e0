/** Imports from this folder's own packages; in a page the import map says where they are. */

/** @param {string} name @returns {Promise<any>} */
export function load(name) {
  return import(name);
}
