/** Node's own response, of HTTP/1.1 or of HTTP/2, which alone has a `stream`. */
export type Breakable = {
  readonly stream?: unknown
  destroy(error?: Error): unknown
}

/**
 * Destroys the connection, or in HTTP/2 the stream, of an answer: an error of the body alone would have its text sent
 * and the answer ended as if it were whole. False where there is none, as in tests.
 */
export function breakOff(outgoing: Breakable | undefined, cause: unknown): boolean {
  if (outgoing === undefined) return false
  // Without an error a stream of HTTP/2 would be told to have ended well; a socket would throw it.
  if (outgoing.stream === undefined) outgoing.destroy()
  else outgoing.destroy(cause instanceof Error ? cause : new Error(String(cause)))
  return true
}
