import type { Result, Router } from 'hono/router'
import { TrieRouter } from 'hono/router/trie-router'

/**
 * Finds the handlers of a request in a trie, and caches the handlers of paths without parameters,
 * because a search takes as long as the check of the API key. Hono's faster router does not support
 * a parameter beside a fixed segment, such as `/v1/webhooks/{id}` beside `/v1/webhooks/events`. All
 * routes must be added before the first request.
 */
export class FixedPathRouter<T> implements Router<T> {
  readonly name = 'FixedPathRouter'
  readonly #trie = new TrieRouter<T>()
  /** Method and path of the routes without parameters. */
  readonly #fixed = new Set<string>()
  /** The handlers found for these routes, by the same key. */
  readonly #found = new Map<string, Result<T>>()

  add(method: string, path: string, handler: T): void {
    if (this.#found.size > 0) throw new Error(`the route ${path} is added after the first request`)
    this.#trie.add(method, path, handler)
    if (!HAS_PARAMETER.test(path)) this.#fixed.add(`${method} ${path}`)
  }

  match(method: string, path: string): Result<T> {
    const key = `${method} ${path}`
    const known = this.#found.get(key)
    if (known !== undefined) return known
    const result = this.#trie.match(method, path)
    if (this.#fixed.has(key)) this.#found.set(key, result)
    return result
  }
}

const HAS_PARAMETER = /[:*?{]/
