import pg from 'pg'

/** Connection attempts and statements of this process that PostgreSQL has not answered. */
let unanswered = 0
let waiting: (() => void)[] = []

function ended() {
  if (--unanswered > 0) return
  for (const resolve of waiting) resolve()
  waiting = []
}

/** Counts the calls of a method that have not called back. */
function count(name: 'connect' | 'query') {
  // biome-ignore lint/suspicious/noExplicitAny: any overload of pg.
  const methods = pg.Client.prototype as unknown as Record<string, (...args: any[]) => any>
  const original = methods[name] as (typeof methods)[string]
  methods[name] = function (...args) {
    const callback = args.at(-1)
    const isCallback = typeof callback === 'function'
    const counted = (...answer: unknown[]) => {
      ended()
      callback.apply(this, answer)
    }
    unanswered++
    const result = original.apply(this, isCallback ? args.with(-1, counted) : args)
    if (!isCallback) Promise.resolve(result).then(ended, ended)
    return result
  }
}

count('connect')
count('query')

export const areStatementsOpen = () => unanswered > 0

/**
 * Resolves once PostgreSQL has answered everything, after `maxMs` at the latest: a statement may
 * wait for a lock that a test holds.
 */
export async function statementsAnswered(maxMs: number): Promise<void> {
  await new Promise<void>(resolve => {
    const timer = setTimeout(resolve, maxMs)
    waiting.push(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}
