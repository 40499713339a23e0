import "@fontsource-variable/inter/wght.css";
import "@fontsource-variable/source-serif-4/wght.css";
import "@fontsource-variable/source-serif-4/wght-italic.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/controls.css";
import "./styles/lab.css";
import { Shell } from "./app/shell";
import { keepForOffline } from "./offline/register";

const host = document.getElementById("page");
if (!host) throw new Error("the page has no #page");
await new Shell(host).start();
keepForOffline();
