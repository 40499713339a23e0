/** Colours and font of a page, as the elements read them. */
export const LOOK = {
  scheme: "light",
  paper: "#ffffff",
  raised: "#eeeeee",
  ink: "#000000",
  muted: "#555555",
  line: "#dddddd",
  accent: "#b3124e",
  masked: "rgb(231, 229, 224)",
  hatch: "#c9c5bc",
  missing: "#d6188a",
  font: "sans-serif",
} as const;
