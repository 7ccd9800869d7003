import { composeEngine } from '../compose/engine.ts'
import type { Config } from '../config/settings.ts'
import { cleanAddress, isFault, parseAddress } from '../engine/address/address.ts'
import type { Engine } from '../engine/engine.ts'
import type { ActionPolicy } from '../engine/verdict/action.ts'
import { toRowResult } from '../engine/verdict/judge.ts'
import { isSimulated, presentResult, presentRow } from '../engine/verdict/present-result.ts'
import { type Result, toClass } from '../engine/verdict/verdict.ts'
import { describeWait, type Wait } from '../jobs/waits/wait-report.ts'
import type { Backend, ListRow, ListStatus, RowRange, ToolCall } from '../mcp/backend.ts'
import { ROWS_DEFAULT } from '../mcp/results.ts'
import { onAbort, orOnAbort } from '../platform/abort.ts'
import type { Clock } from '../platform/clock.ts'
import { EvError } from '../platform/error.ts'
import { sanitizeText, toSentence } from '../platform/text.ts'
import { type CliContext, externalDepsFrom } from './context.ts'
import { stderrLog } from './log.ts'

/** Lists in memory; the oldest is cancelled and forgotten first. */
const LISTS_MAX = 100
/** Characters of the ID of a list. */
const ID_LENGTH = 16

/** Verifies addresses with an engine in this process. Lists are kept in memory until it ends. */
export function createLocalBackend(
  context: CliContext,
  config: Config,
  { sandbox }: { readonly sandbox: boolean },
): Backend {
  const { clock, random } = context
  const log = stderrLog(context, config)
  const engine = composeEngine(config, externalDepsFrom(context, log), { sandbox })
  const policy = config.actionPolicy
  const lists = new Map<string, LocalList>()
  const findList = (jobId: string): LocalList => {
    const list = lists.get(jobId)
    if (list !== undefined) return list
    throw new EvError(
      'no_input',
      `There is no list ${sanitizeText(jobId)}. This server keeps its last ${LISTS_MAX} lists, and forgets them when it ends. Start the list again with verify_list.`,
    )
  }
  return {
    async verify(email, { signal, waiting, onProgress }) {
      let done = 0
      const run = engine.verify(cleanAddress(email).text, {
        signal,
        onStep: step => {
          // A line of the SMTP session is the text of a mail server.
          if (step.kind !== 'line') onProgress({ done: ++done, text: sanitizeText(step.text) })
        },
      })
      const result = await orOnAbort(run, waiting, null)
      signal.throwIfAborted()
      return result === null ? null : presentResult(result, ['flags', 'evidence'], policy)
    },
    async verifyList(emails, call) {
      const list = new LocalList(`job_${random.token(ID_LENGTH)}`, emails, {
        engine,
        clock,
        policy,
      })
      lists.set(list.id, list)
      for (const [id, old] of [...lists].slice(0, -LISTS_MAX)) {
        old.cancel()
        lists.delete(id)
      }
      const forget = onAbort(call.cancelled, () => {
        list.cancel()
        lists.delete(list.id)
      })
      await list.wait(call)
      forget()
      return list.status({ after: 0, limit: ROWS_DEFAULT })
    },
    async getList(jobId, range, call) {
      const list = findList(jobId)
      await list.wait(call)
      return list.status(range)
    },
    async cancelList(jobId) {
      const list = findList(jobId)
      list.cancel()
      return list.status({ after: 0, limit: ROWS_DEFAULT })
    },
    async close() {
      for (const list of lists.values()) list.cancel()
      await engine.close()
    },
  }
}

type ListDeps = {
  readonly engine: Engine
  readonly clock: Clock
  readonly policy: ActionPolicy
}

/** A list that is verified in this process. */
class LocalList {
  readonly id: string
  /** In the order of the list, without text around them. */
  readonly #addresses: readonly string[]
  readonly #deps: ListDeps
  readonly #results = new Map<string, Result>()
  readonly #stopping = new AbortController()
  readonly #ended: Promise<void>
  readonly #listeners = new Set<() => void>()
  #state: 'processing' | 'completed' | 'failed' | 'cancelled' = 'processing'
  #processed = 0

  constructor(id: string, texts: readonly string[], deps: ListDeps) {
    this.id = id
    this.#addresses = texts.map(text => cleanAddress(text).text)
    this.#deps = deps
    this.#ended = this.#run()
  }

  /** Collects the results. Never rejects. */
  async #run(): Promise<void> {
    const counts = new Map<string, number>()
    for (const email of this.#addresses) counts.set(email, (counts.get(email) ?? 0) + 1)
    const { signal } = this.#stopping
    try {
      for await (const result of this.#deps.engine.verifyMany(counts.keys(), { signal })) {
        this.#results.set(result.email, toRowResult(result))
        this.#processed += counts.get(result.email) ?? 0
        for (const listener of this.#listeners) listener()
      }
      if (this.#state === 'processing') this.#state = 'completed'
    } catch {
      if (this.#state === 'processing') this.#state = 'failed'
    }
  }

  /** Waits until the list has ended, or the call has waited long enough. */
  async wait({ waiting, onProgress }: ToolCall): Promise<void> {
    const total = this.#addresses.length
    const report = () => {
      const done = this.#processed
      onProgress({ done, total, text: `${done} of ${total} addresses are finished.` })
    }
    report()
    this.#listeners.add(report)
    await orOnAbort(this.#ended, waiting, undefined)
    this.#listeners.delete(report)
  }

  /** Stops the list, unless it has ended. */
  cancel(): void {
    if (this.#state !== 'processing') return
    this.#state = 'cancelled'
    this.#stopping.abort()
  }

  status({ after, limit }: RowRange): ListStatus {
    const end = after + limit
    const classes = { deliverable: 0, risky: 0, undeliverable: 0, unknown: 0 }
    for (const email of this.#addresses) {
      const result = this.#results.get(email)
      if (result !== undefined) classes[toClass(result.verdict)]++
    }
    const results: ListRow[] = []
    const pending: string[] = []
    for (const [index, email] of this.#addresses.slice(after, end).entries()) {
      const result = this.#results.get(email)
      if (result === undefined) pending.push(email)
      else results.push(toRow(after + index + 1, result, this.#deps.policy))
    }
    return {
      job_id: this.id,
      status: this.#state,
      total: this.#addresses.length,
      processed: this.#processed,
      classes,
      waitingFor: this.#state === 'processing' ? this.#describeWaits() : [],
      results,
      pending,
      next_after: end < this.#addresses.length ? end : null,
    }
  }

  /** Returns what unfinished rows wait for, as far as the engine knows. */
  #describeWaits(): string[] {
    const { engine, clock } = this.#deps
    const unfinished = this.#addresses.filter(email => !this.#results.has(email))
    const check = engine.resolverCheck
    if (check?.failure) {
      const until = clock.now() + check.dueInMs
      const common = { operator: null, rows: unfinished.length, otherLists: 0 }
      const failure = `${toSentence(check.failure.detail)} To check this machine, run "ev doctor".`
      return [describeWait({ ...common, reason: 'dns_check', until, failure })]
    }
    return countBy(unfinished, email => operatorOf(engine, email))
      .slice(0, WAITS_MAX)
      .map(([operator, rows]) => describeWait(toWait(engine, operator, rows)))
  }
}

/** Causes in a response, as in the jobs of a service. */
const WAITS_MAX = 5

/** Returns the provider of an address, without a DNS lookup. */
function operatorOf(engine: Engine, email: string): string {
  const address = parseAddress(email)
  return isFault(address) ? email : engine.likelyOperator(address.domain.ascii)
}

function toWait(engine: Engine, operator: string, rows: number): Wait {
  const stop = engine.probeStop(operator)
  const common = { operator, rows, otherLists: 0 }
  if (stop === null) return { ...common, reason: 'rate_limited', until: null }
  const reason = stop.why === 'unknown-users' ? 'unknown_users' : stop.why
  return { ...common, reason, until: stop.until }
}

/** Counts texts by a key, the most frequent first. */
function countBy(texts: readonly string[], key: (text: string) => string): [string, number][] {
  const counts = new Map<string, number>()
  for (const text of texts) counts.set(key(text), (counts.get(key(text)) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a)
}

function toRow(row: number, result: Result, policy: ActionPolicy): ListRow {
  const shown = presentRow(result, policy)
  const { action, action_reason, risk_level, reason, confidence, did_you_mean } = shown
  return {
    row,
    email: result.email,
    class: shown.class,
    action,
    action_reason,
    reason,
    risk_level,
    confidence,
    did_you_mean,
    ...(isSimulated(result) ? { sandbox: true as const } : {}),
  }
}
