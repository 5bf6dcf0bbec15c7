// The worker with faults that also reports its memory: GET /_test/memory returns the bytes of linear memory. Linear
// memory never shrinks, so this is also the largest size that it ever had. Worker and lanes share this module, and so
// the memory.

/** @type {WebAssembly.Instance[]} */
const instances = [];
const { Instance } = WebAssembly;
WebAssembly.Instance = function (module, imports) {
  const instance = new Instance(module, imports);
  instances.push(instance);
  return instance;
};
// No static import, which would run before the lines above.
const { default: Hindered, GateLane } = await import("./hindered-worker.js");

export { GateLane };

export default {
  async fetch(request, env, context) {
    if (new URL(request.url).pathname !== "/_test/memory") return Hindered.fetch(request, env, context);
    const bytes = instances.reduce((sum, { exports }) => sum + exports.memory.buffer.byteLength, 0);
    return Response.json({ bytes });
  },
};
