import { composeEngine } from '../../compose/engine.ts'
import type { Config } from '../../config/settings.ts'
import { cleanAddress } from '../../engine/address/address.ts'
import { presentResult } from '../../engine/verdict/present-result.ts'
import { type Class, type Result, toClass } from '../../engine/verdict/verdict.ts'
import { EvError } from '../../platform/error.ts'
import { sanitizeText } from '../../platform/text.ts'
import { type CliContext, externalDepsFrom } from '../context.ts'
import { stderrLog } from '../log.ts'
import {
  type Backend,
  INSTANT_MAX,
  type ListRow,
  type ListStatus,
  ROWS,
  type RowRange,
} from './backend.ts'

/** Lists in memory; the oldest is forgotten first. */
const LISTS_MAX = 100

/** Verifies addresses with an engine in this process. Lists are kept in memory until it ends. */
export function createLocalBackend(
  context: CliContext,
  config: Config,
  { sandbox }: { readonly sandbox: boolean },
): Backend {
  const log = stderrLog(context, config)
  const engine = composeEngine(config, externalDepsFrom(context, log), { sandbox })
  const lists = new Map<string, LocalList>()
  const closing = new AbortController()
  return {
    async verify(email, signal) {
      const result = await engine.verify(cleanAddress(email).text, { signal })
      return presentResult(result, ['flags', 'evidence'])
    },
    async verifyList(emails) {
      const list = new LocalList(`job_${context.random.token(ID_LENGTH)}`, emails)
      lists.set(list.id, list)
      for (const id of [...lists.keys()].slice(0, -LISTS_MAX)) lists.delete(id)
      const results = engine.verifyMany(new Set(list.addresses), { signal: closing.signal })
      const ended = list.collect(results)
      if (emails.length <= INSTANT_MAX) await ended
      return list.status({ after: 0, limit: ROWS })
    },
    async getList(jobId, range) {
      const list = lists.get(jobId)
      if (list === undefined) throw noSuchList(jobId)
      return list.status(range)
    },
    async close() {
      closing.abort()
      await engine.close()
    },
  }
}

const ID_LENGTH = 16

const noSuchList = (jobId: string) =>
  new EvError(
    'no_input',
    `There is no list ${sanitizeText(jobId)}. A list is forgotten when the MCP server ends.`,
  )

class LocalList {
  readonly id: string
  /** In the order of the list, without text around them. */
  readonly addresses: readonly string[]
  readonly #results = new Map<string, Result>()
  #state: 'processing' | 'completed' | 'failed' = 'processing'

  constructor(id: string, texts: readonly string[]) {
    this.id = id
    this.addresses = texts.map(text => cleanAddress(text).text)
  }

  /** Collects the results. Never rejects. */
  async collect(results: AsyncIterable<Result>): Promise<void> {
    try {
      for await (const result of results) this.#results.set(result.email, result)
      this.#state = 'completed'
    } catch {
      this.#state = 'failed'
    }
  }

  status({ after, limit }: RowRange): ListStatus {
    const rows = this.addresses.map((email, n) => toRow(n + 1, email, this.#results.get(email)))
    const classes = { deliverable: 0, risky: 0, undeliverable: 0, unknown: 0 }
    const done = rows.filter(row => row.class !== null)
    for (const row of done) classes[row.class as Class]++
    const end = after + limit
    return {
      ...{ job_id: this.id, status: this.#state, total: rows.length, processed: done.length },
      ...{ classes, results: rows.slice(after, end).filter(row => row.class !== null) },
      next_after: end < rows.length ? end : null,
    }
  }
}

const toRow = (row: number, email: string, result: Result | undefined): ListRow => ({
  ...{ row, email, class: result === undefined ? null : toClass(result.verdict) },
  risk_level: result?.verdict.risk ?? null,
  reason: result?.verdict.reason ?? null,
})
