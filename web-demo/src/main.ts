import "@fontsource-variable/inter/wght.css";
import "@fontsource-variable/source-serif-4/wght.css";
import "@fontsource-variable/source-serif-4/wght-italic.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/controls.css";
import "./styles/lab.css";
import { Shell } from "./app/shell";

const host = document.getElementById("page");
if (!host) throw new Error("the page has no #page");
new Shell(host).start();
