import { EvClient } from '../client/client.ts'
import { composeEngine } from '../compose/engine.ts'
import type { Config } from '../config/settings.ts'
import { cleanAddress } from '../engine/address/address.ts'
import { toRowResult } from '../engine/verdict/judge.ts'
import { presentResult } from '../engine/verdict/present-result.ts'
import { type Class, type Result, toClass } from '../engine/verdict/verdict.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { sanitizeText } from '../platform/text.ts'
import { type CliContext, externalDepsFrom } from './context.ts'
import { stderrLog } from './log.ts'

type ListRow = {
  /** Number of the row in the list, from 1. */
  readonly row: number
  readonly email: string
  readonly class: string | null
  readonly risk_level: string | null
  readonly reason: string | null
}

/** The state of a list with a part of its results. */
type ListStatus = {
  readonly job_id: string
  readonly status: string
  readonly total: number
  readonly processed: number
  /** Results by class. */
  readonly classes: Readonly<Record<Class, number>>
  /** The available results of the requested rows, in the order of the list. */
  readonly results: readonly ListRow[]
  /** Value of `after` for the next rows; null if there are no more. */
  readonly next_after: number | null
}

/** The rows after a number; `after` 0 starts with the first. */
type RowRange = { readonly after: number; readonly limit: number }

/** Verifies addresses with an engine in this process, or with a service. */
export type Backend = {
  /** Verifies one address; the result has its evidence. */
  verify(email: string, signal: AbortSignal): Promise<VerifiedAddress>
  /** Starts the verification of a list. A short list is finished when this resolves. */
  verifyList(emails: readonly string[], signal: AbortSignal): Promise<ListStatus>
  /** Returns the status of a list. Throws EvError if there is no such list. */
  getList(jobId: string, range: RowRange, signal: AbortSignal): Promise<ListStatus>
  close(): Promise<void>
}

export type VerifiedAddress = {
  readonly email: string
  readonly class: Class
  readonly valid: boolean
  readonly reason: string
  readonly evidence?: object
}

/** A list of up to this many addresses is answered at once. */
const INSTANT_MAX = 10

/** Rows of a response unless more are requested. */
export const ROWS = 100

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
      for await (const result of results) this.#results.set(result.email, toRowResult(result))
      this.#state = 'completed'
    } catch {
      this.#state = 'failed'
    }
  }

  status({ after, limit }: RowRange): ListStatus {
    const rows = this.addresses.map((email, n) =>
      fromResult(n + 1, email, this.#results.get(email)),
    )
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

const fromResult = (row: number, email: string, result: Result | undefined): ListRow => ({
  ...{ row, email, class: result === undefined ? null : toClass(result.verdict) },
  risk_level: result?.verdict.risk ?? null,
  reason: result?.verdict.reason ?? null,
})

type ServiceOptions = {
  readonly url: string
  /** The secret of an API key. */
  readonly key: string | undefined
  readonly sandbox: boolean
}

/** Verifies addresses with a service. Throws EvError if the URL or the key is invalid. */
export function createServiceBackend({ url, key, sandbox }: ServiceOptions): Backend {
  if (key === undefined || key === '') {
    throw new EvError('usage', 'Set EV_KEY in the environment to an API key of the service.')
  }
  const client = createClient({ baseUrl: url, apiKey: key, sandbox })
  const getList: Backend['getList'] = async (jobId, { after, limit }, signal) => {
    const [job, page] = await Promise.all([
      client.jobs.get(jobId, { signal }),
      client.jobs.rows(jobId, { after, limit }, { signal }).page(),
    ])
    return {
      ...{ job_id: jobId, status: job.status, classes: job.data.classes },
      ...{ total: job.total_emails, processed: job.processed_emails },
      results: page.items.filter(row => row.class !== null).map(toRow),
      next_after: page.has_more ? after + limit : null,
    }
  }
  return {
    // With steps, an invalid address is a result instead of an error.
    verify: (email, signal) => client.verify.single(email, { onStep: () => {}, signal }),
    async verifyList(emails, signal) {
      const list = await client.bulk(emails, { signal })
      if (!('instant' in list)) return getList(list.job_id, { after: 0, limit: ROWS }, signal)
      const results = list.results.map((item, n) => toRow({ ...item, row: n + 1 }))
      const count = (name: string) => results.filter(row => row.class === name).length
      return {
        ...{ job_id: list.job_id, status: list.status, total: list.total_emails },
        ...{ processed: results.length, results, next_after: null },
        classes: {
          ...{ deliverable: count('deliverable'), risky: count('risky') },
          ...{ undeliverable: count('undeliverable'), unknown: count('unknown') },
        },
      }
    },
    getList,
    close: async () => {},
  }
}

const toRow = ({ row, email, class: kind, risk_level, reason }: ListStatus['results'][number]) => ({
  ...{ row, email, class: kind, risk_level, reason },
})

function createClient(options: ConstructorParameters<typeof EvClient>[0]): EvClient {
  try {
    return new EvClient(options)
  } catch (error) {
    throw new EvError('usage', errorMessage(error), { cause: error })
  }
}
