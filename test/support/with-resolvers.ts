/** `Promise.withResolvers`, which Node.js 20 does not have. */
export function withResolvers() {
  let resolve = () => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
