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
  readonly #routes: (readonly [method: string, path: string, handler: T])[] = []
  /** Built at the first request: most routers only pass their routes on to that of the app. */
  #trie: TrieRouter<T> | null = null
  /** The handlers of paths without parameters, by method and path; null until the first request. */
  readonly #fixed = new Map<string, Map<string, Result<T> | null>>()

  add(method: string, path: string, handler: T): void {
    if (this.#trie !== null) throw new Error(`the route ${path} is added after the first request`)
    this.#routes.push([method, path, handler])
    if (HAS_PARAMETER.test(path)) return
    const paths = this.#fixed.get(method) ?? new Map()
    this.#fixed.set(method, paths.set(path, null))
  }

  match(method: string, path: string): Result<T> {
    const paths = this.#fixed.get(method)
    const known = paths?.get(path)
    if (known) return known
    this.#trie ??= this.#build()
    const result = this.#trie.match(method, path)
    if (known === null) paths?.set(path, result)
    return result
  }

  #build(): TrieRouter<T> {
    const trie = new TrieRouter<T>()
    for (const route of this.#routes) trie.add(...route)
    return trie
  }
}

const HAS_PARAMETER = /[:*?{]/
