/** The entry point of the page that `attendo export --to web` writes: a translator without a server. */

import "./inspector/style.css";
import "./app/style.css";

import { mount } from "svelte";

import Site from "./site/Site.svelte";

const target = document.getElementById("attendo");
if (target) mount(Site, { target });
