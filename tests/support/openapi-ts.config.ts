// What scripts/api-types.sh generates: the schemas of the API's document as types.
import { readFileSync } from "node:fs";

const { openapi, info, components } = JSON.parse(readFileSync("docs/openapi.json", "utf8"));

export default {
  input: { openapi, info, paths: {}, components: { schemas: components.schemas } },
  output: { path: "tests/support/api", module: { extension: ".ts" } },
  plugins: ["@hey-api/typescript"],
};
