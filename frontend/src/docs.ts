/** The page /docs of the server: its OpenAPI schema with forms that send requests. It loads nothing from elsewhere. */

import SwaggerUI from "swagger-ui-dist/swagger-ui-es-bundle.js";
import "swagger-ui-dist/swagger-ui.css";
import "./docs.css";

import { stored } from "./inspector/state/storage";

const NOTES = {
  en: { text: "Open a route and press “Execute”; the examples work with the models of this server.", back: "Back to the pages" },
  ko: { text: "경로를 펼치고 “Execute”를 누르면 요청을 보냅니다. 예제는 이 서버의 모델로 바로 실행됩니다.", back: "페이지로 돌아가기" },
};

const chosen = stored("attendo.lang");
const lang = chosen === "ko" || chosen === "en" ? chosen : navigator.language.startsWith("ko") ? "ko" : "en";
document.documentElement.lang = lang;
document.getElementById("note-text")!.textContent = NOTES[lang].text;
const back = document.getElementById("back") as HTMLAnchorElement;
back.href = "./";
back.textContent = `← ${NOTES[lang].back}`;

const theme = stored("attendo.theme");
const isDark = theme === "dark" || (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
// The name is that of Swagger UI.
document.documentElement.classList.toggle("dark-mode", isDark);

SwaggerUI({
  url: "openapi.json",
  domNode: document.getElementById("docs"),
  deepLinking: true,
  tryItOutEnabled: true,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
  // The default one is on another host.
  validatorUrl: null,
});
