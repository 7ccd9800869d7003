import type { Remembered } from '../../engine/memory.ts'
import type { Change, Content } from './write-group.ts'

/** What is committed in groups: a change of a job's items, or answers to be remembered. */
export type Recordable =
  | { readonly jobId: string; readonly change: Change }
  | { readonly answers: ReadonlyMap<string, Remembered> }

/** How many items it changes. */
export function itemsOf(recordable: Recordable): number {
  if ('answers' in recordable) return 0
  const { results = [], filed = [], postponed = [] } = recordable.change
  return results.length + filed.length + postponed.length
}

export function contentOf(group: readonly Recordable[]): Content {
  const changes = new Map<string, Change[]>()
  const answers = new Map<string, Remembered>()
  for (const recordable of group) {
    if ('answers' in recordable) {
      for (const [key, remembered] of recordable.answers) answers.set(key, remembered)
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
export const apart = ({ changes, answers }: Content): Content[] =>
  [...changes].map(([jobId, own], index) => ({
    changes: new Map([[jobId, own]]),
    answers: index === 0 ? answers : new Map(),
  }))
