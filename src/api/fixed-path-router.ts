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
  /** The handlers of paths without parameters, by method and path; null until the first request. */
  readonly #fixed = new Map<string, Map<string, Result<T> | null>>()
  #isUsed = false

  add(method: string, path: string, handler: T): void {
    if (this.#isUsed) throw new Error(`the route ${path} is added after the first request`)
    this.#trie.add(method, path, handler)
    if (HAS_PARAMETER.test(path)) return
    const paths = this.#fixed.get(method) ?? new Map()
    this.#fixed.set(method, paths.set(path, null))
  }

  match(method: string, path: string): Result<T> {
    const paths = this.#fixed.get(method)
    const known = paths?.get(path)
    if (known) return known
    const result = this.#trie.match(method, path)
    if (known === null) paths?.set(path, result)
    this.#isUsed ||= known === null
    return result
  }
}

const HAS_PARAMETER = /[:*?{]/
