import type { Context } from 'hono'
import { findKeyById } from '../../accounts/key-store.ts'
import { findPerson } from '../../accounts/people/person-store.ts'
import { addAuditEntry, type Origin } from '../../audit.ts'
import { type Database, writeConcurrent } from '../../db/database.ts'
import { findSource } from '../../feedback/source-store.ts'
import { findJob } from '../../jobs/job-store.ts'
import { findSchedule } from '../../jobs/schedules/schedule-store.ts'
import { HOUR } from '../../platform/clock.ts'
import { errorMessage } from '../../platform/error.ts'
import { writeLog } from '../../platform/log.ts'
import { TtlMap } from '../../platform/ttl-map.ts'
import { findWebhook } from '../../webhooks/endpoint-store.ts'
import { findEvent } from '../../webhooks/event-store.ts'
import type { Caller, Env } from '../context.ts'
import type { ApiCode } from '../errors/api-error.ts'
import { toApiError } from '../errors/errors.ts'
import type { Metrics } from '../metrics.ts'
import { withOrigin } from '../request-context.ts'
import type { ServiceDeps } from '../service.ts'
import { API_LOG } from '../telemetry.ts'

type RefusedRequestDeps = Pick<ServiceDeps, 'clock' | 'random' | 'database' | 'log'> & {
  readonly metrics: Metrics
}

type RefusedRequest = {
  readonly accountId: string
  readonly origin: Origin
  /** Method and path of the route, such as `GET /v1/jobs/{id}`, and the error. */
  readonly name: string
  /** The ID in the path if it belongs to another account; else null. */
  readonly id: string | null
}

/** Writes the requests of known callers that were refused for lack of rights to the audit log. */
export type RefusedRequests = { add(refused: RefusedRequest): Promise<void> }

/**
 * Entries of an account in `PERIOD_MS`, for each process: enough to see what a caller tries, while
 * a program that repeats a refused request does not fill the audit log.
 */
const ENTRIES_MAX = 20
const PERIOD_MS = HOUR
/** Accounts whose entries are counted at the same time. */
const ACCOUNTS_MAX = 10_000

export function createRefusedRequests(deps: RefusedRequestDeps): RefusedRequests {
  const { database, log, metrics } = deps
  const counts = new TtlMap<{ entries: number }>({ sizeMax: ACCOUNTS_MAX, clock: deps.clock })
  /** Counts an entry of an account. Returns false if there are too many. */
  function count(accountId: string): boolean {
    const known = counts.get(accountId)
    const current = known ?? { entries: 0 }
    if (known === undefined) counts.set(accountId, current, PERIOD_MS)
    return ++current.entries <= ENTRIES_MAX
  }
  return {
    async add({ accountId, origin, ...target }) {
      if (!count(accountId)) return metrics.auditOmitted()
      const entry = { action: 'request.refused', accountId, target } as const
      try {
        await writeConcurrent(database, trx => addAuditEntry(trx, { ...deps, origin }, entry))
      } catch (error) {
        // The response is that of the refused request, also if the entry cannot be written.
        writeLog(log, API_LOG.refusalNotAudited, { why: errorMessage(error) })
      }
    },
  }
}

/** Adds a request of the API if its error means that the caller has no right to it. */
export function noteError(
  c: Context<Env>,
  deps: NoteDeps,
  { target, error }: { readonly target: string; readonly error: unknown },
): Promise<void> | null {
  const caller: Caller | undefined = c.get('caller')
  const { code } = toApiError(error)
  // A request without a valid key has no caller.
  if (caller === undefined || !(code === 'not_found' || FORBIDDEN.has(code))) return null
  return noteRefused(c, deps, { target, code, caller })
}

async function noteRefused(
  c: Context<Env>,
  { refusedRequests, ...deps }: NoteDeps,
  { target, code, caller }: { target: string; code: ApiCode; caller: Caller },
): Promise<void> {
  const id = code === 'not_found' ? await findForeignId(c, deps, caller) : null
  if (id === null && !FORBIDDEN.has(code)) return
  const { origin } = withOrigin(c, deps)
  await refusedRequests.add({
    accountId: caller.account.id,
    origin,
    name: `${target}: ${code}`,
    id,
  })
}

type NoteDeps = Pick<ServiceDeps, 'database' | 'log'> & {
  readonly refusedRequests: RefusedRequests
}

/** Errors of a known caller that lacks a right. */
const FORBIDDEN: ReadonlySet<ApiCode> = new Set([
  'insufficient_scope',
  'ip_restricted',
  'domain_restricted',
])

/**
 * Returns the ID in the path if it belongs to another account, for which the caller gets 404.
 * Returns null otherwise, and if the database cannot be read.
 */
async function findForeignId(
  c: Context<Env>,
  { database, log }: Omit<NoteDeps, 'refusedRequests'>,
  { account }: Caller,
): Promise<string | null> {
  const [id, kind = ''] = /^([a-z]+)_\w{1,60}$/.exec(c.req.param('id') ?? '') ?? []
  if (id === undefined) return null
  try {
    const owner = (await OWNERS[kind]?.(database, id)) ?? account.id
    return owner === account.id ? null : id
  } catch (error) {
    writeLog(log, API_LOG.refusalNotAudited, { why: errorMessage(error) })
    return null
  }
}

/** How to find the account that an ID belongs to, by the prefix of the ID. */
const OWNERS: Readonly<
  Record<string, (database: Database, id: string) => Promise<string | null | undefined>>
> = {
  job: async (database, id) => (await findJob(database, id))?.account_id,
  key: async (database, id) => (await findKeyById(database, id))?.account.id,
  per: async ({ reader }, id) => (await findPerson(reader, null, id))?.account_id,
  wh: async (database, id) => (await findWebhook(database, null, id))?.accountId,
  evt: async (database, id) => (await findEvent(database, null, id))?.event.account_id,
  fbs: async (database, id) => (await findSource(database, id))?.account_id,
  sch: async ({ reader }, id) => (await findSchedule(reader, { id, accountId: null }))?.account_id,
}
