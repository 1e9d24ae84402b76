/** The entry point of the web application, which `attendo serve` delivers. */

import "./inspector/style.css";
import "./app/style.css";

import { mount } from "svelte";

import App from "./app/App.svelte";

const target = document.getElementById("attendo");
if (target) mount(App, { target });
