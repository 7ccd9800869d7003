import type { CachedAnswer } from '../../engine/result-cache.ts'
import type { Content, ItemUpdate } from './commit-batch.ts'

/** What is committed in groups: a change of a job's items, or answers to be remembered. */
export type Recordable =
  | { readonly jobId: string; readonly change: ItemUpdate }
  | { readonly answers: ReadonlyMap<string, CachedAnswer> }

/** How many items it changes. */
export function itemsOf(recordable: Recordable): number {
  if ('answers' in recordable) return 0
  const { results = [], filed = [], postponed = [] } = recordable.change
  return results.length + filed.length + postponed.length
}

export function contentOf(group: readonly Recordable[]): Content {
  const changes = new Map<string, ItemUpdate[]>()
  const answers = new Map<string, CachedAnswer>()
  for (const recordable of group) {
    if ('answers' in recordable) {
      for (const [key, cached] of recordable.answers) answers.set(key, cached)
      continue
    }
    const { jobId, change } = recordable
    const own = changes.get(jobId)
    if (own === undefined) changes.set(jobId, [change])
    else own.push(change)
  }
  return { changes, answers }
}

/** What a group holds of each job by itself; the answers go with the first. */
export const splitByJob = ({ changes, answers }: Content): Content[] =>
  [...changes].map(([jobId, own], index) => ({
    changes: new Map([[jobId, own]]),
    answers: index === 0 ? answers : new Map(),
  }))
