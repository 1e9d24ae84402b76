/** The entry point of the offline page: shows the record that the page contains. */

import "./inspector/style.css";

import { mount } from "svelte";

import OfflineInspector from "./inspector/OfflineInspector.svelte";

const text = document.getElementById("attendo-record")?.textContent ?? "";
const target = document.getElementById("attendo");
// A page without a record still contains the placeholder.
if (target) mount(OfflineInspector, { target, props: { json: text.trimStart().startsWith("__") ? null : text } });
