/** What ECMAScript 2024 adds and Node 20 lacks, for the engine. Other code uses the built-ins. */

/** A promise with the functions that settle it, like `Promise.withResolvers`. */
type Resolvers<T> = {
  readonly promise: Promise<T>
  readonly resolve: (value: T | PromiseLike<T>) => void
  readonly reject: (reason?: unknown) => void
}

/** Creates a promise that its caller settles. */
export function withResolvers<T>(): Resolvers<T> {
  let resolve!: Resolvers<T>['resolve']
  let reject!: Resolvers<T>['reject']
  const promise = new Promise<T>((onResolve, onReject) => {
    resolve = onResolve
    reject = onReject
  })
  return { promise, resolve, reject }
}

/** Groups items by a key, in the order of the items, like `Map.groupBy`. */
export function groupBy<K, T>(items: Iterable<T>, toKey: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>()
  for (const item of items) {
    const key = toKey(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}
