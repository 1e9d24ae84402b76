/** The offline page begins here: take the record out of the page and show it. */

import "./inspector/style.css";

import { mount } from "svelte";

import LookPage from "./inspector/OfflineInspector.svelte";

const text = document.getElementById("attendo-record")?.textContent ?? "";
const target = document.getElementById("attendo");
// A page that was never given a record still holds the mark of its place.
if (target) mount(LookPage, { target, props: { json: text.trimStart().startsWith("__") ? null : text } });
