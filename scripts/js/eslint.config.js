/** Rules for the page's modules and their tests. Run from the repository's top, by scripts/lint. */

import js from "@eslint/js";
import globals from "globals";

const RULES = {
  ...js.configs.recommended.rules,
  eqeqeq: "error",
  // a text that is translated is a key, and stands in one piece
  "max-len": ["error", { code: 120, ignorePattern: '^\\s*"[^"]*",?$' }],
  "no-unused-vars": ["error", { ignoreRestSiblings: true }],
  "no-var": "error",
  "prefer-const": "error",
};

/** What tests/js/browser.js plays of a browser, and a test may change. */
const PLAYED = { document: "readonly", window: "readonly", Notification: "readonly" };

export default [
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  { files: ["static/**/*.js"], languageOptions: { globals: globals.browser }, rules: RULES },
  { files: ["static/locale/**", "static/findings/**"], rules: { "max-len": "off" } },
  { files: ["tests/js/**/*.js"], languageOptions: { globals: { ...globals.nodeBuiltin, ...PLAYED } }, rules: RULES },
  { files: ["scripts/js/*.js"], languageOptions: { globals: globals.nodeBuiltin }, rules: RULES },
];
