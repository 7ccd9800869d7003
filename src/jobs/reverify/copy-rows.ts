import { sql } from 'kysely'
import { type Database, type Trx, writeConcurrent } from '../../db/database.ts'
import { nextChunk, runChunk } from '../../db/paging.ts'
import { addKept, countKeptIn, type KeptCounts, NONE_KEPT } from '../import/item-import.ts'
import { lastPosition, reasonIn } from '../results/result-store.ts'
import { checkedAt, isAddress, isSelected, type Selection } from './selection.ts'

type Selected = {
  readonly rows: number
  /** Those that are addresses, at most one credit each. */
  readonly addresses: number
}

/** Counts the items that a selection verifies again, without duplicates. */
export async function countSelected(
  database: Database,
  jobId: string,
  selection: Selection,
): Promise<Selected> {
  const last = await lastPosition(database, jobId)
  const size = nextChunk(database)
  const selected = { rows: 0, addresses: 0 }
  for (let after = 0; after < last; after += size) {
    const { rows } = await runChunk(database, () =>
      sql<Selected>`
        select count(*) as rows,
          coalesce(sum(case when ${isAddress(database.reader)} then 1 else 0 end), 0) as addresses
        from item where job_id = ${jobId} and position > ${after} and position <= ${after + size}
          and ${isSelected(database.reader, selection)}`.execute(database.reader),
    )
    for (const part of rows) {
      selected.rows += Number(part.rows)
      selected.addresses += Number(part.addresses)
    }
  }
  return selected
}

type Copy = {
  readonly from: string
  readonly to: string
  readonly selection: Selection
  /** Lets other work go before the next chunk. */
  readonly yieldToOthers: () => Promise<void>
}

/**
 * Copies the items of a job to a new one, with their positions and cells. Selected items are
 * queued with their previous result; all others keep their result. Returns the counts of the kept
 * results, over all rows of the list.
 */
export async function copyRows(
  database: Database,
  { from, to, selection, yieldToOthers }: Copy,
): Promise<KeptCounts> {
  const last = await lastPosition(database, from)
  let kept = NONE_KEPT
  const size = nextChunk(database)
  for (let after = 0; after < last; after += size) {
    const range = { from, to, after, end: after + size }
    const counts = await writeConcurrent(database, async trx => {
      await copyChunk(trx, selection, range)
      return countKeptIn(trx, { jobId: to, after, end: range.end })
    })
    kept = addKept(kept, counts)
    await yieldToOthers()
  }
  return kept
}

type Range = Pick<Copy, 'from' | 'to'> & { readonly after: number; readonly end: number }

async function copyChunk(trx: Trx, selection: Selection, o: Range): Promise<void> {
  const { from, to, after, end } = o
  await sql`
    insert into item (job_id, position, text, dedupe_key, cells, same_as, copies, due_at, tries,
      state, result, class, previous)
    select cast(${to} as text), position, text, dedupe_key, cells, same_as, copies, 0, 0,
      case when state = 'same' then 'same' when selected = 1 then 'queued' else 'done' end,
      case when selected = 0 then result end, case when selected = 0 then class end,
      case when state = 'done' and selected = 1 then ${previousText(trx)}
        when selected = 1 then previous end
    from (
      select item.*, case when ${isSelected(trx, selection)} then 1 else 0 end as selected
      from item where job_id = ${from} and position > ${after} and position <= ${end}) as source
    order by position`.execute(trx)
}

/** See `ItemTable.previous`. */
const previousText = (trx: Trx) =>
  sql`class || ' ' || ${reasonIn(trx, sql`result`, sql`class`)} || ' ' || ${checkedAt(trx)}`
