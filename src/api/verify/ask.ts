import type { Context } from 'hono'
import type { Reservation } from '../../accounts/credits/usage-ledger.ts'
import type { Trx } from '../../db/database.ts'
import { commitMark } from '../../db/postgres/commit.ts'
import { sandboxResult } from '../../engine/sandbox.ts'
import type { Step } from '../../engine/step.ts'
import type { Result } from '../../engine/verdict/verdict.ts'
import type { JobOptions } from '../../jobs/job-store.ts'
import type { Env } from '../context.ts'
import { unlessAborted } from '../middleware/client-aborted.ts'
import { commitResponse } from '../middleware/idempotency.ts'
import type { Service } from '../service.ts'
import { stateOf } from '../state.ts'
import { reserveOrGetCached } from './credits.ts'

/** What is asked of one address. */
export type Asked = JobOptions & { readonly email: string }

/** Verifies one address for somebody who waits, has it written down, and answers. */
export async function answerOne(
  c: Context<Env>,
  service: Service,
  asked: Asked,
  present: (result: Result) => object,
): Promise<Response> {
  if (c.get('sandbox')) {
    const result = sandboxResult(service.clock, asked.email)
    return settled(c, service, { result, reservation: null }, present)
  }
  const { reservation, known } = await reserveOrGetCached(c, service, 1, () =>
    getCached(service, asked),
  )
  if (reservation === null) return settled(c, service, { result: known, reservation }, present)
  const result = await orGiveBack(c, service, reservation, () => verify(c, service, asked))
  return settled(c, service, { result, reservation }, present)
}

/** The answer to one question that costs no credit; null: there is none. */
export const getCached = async (
  { engine }: Service,
  { email, checkSmtp, forceRefresh }: Asked,
  onStep?: (step: Step) => void,
): Promise<Result | null> =>
  checkSmtp && !forceRefresh
    ? engine.getCached(email, onStep === undefined ? {} : { onStep })
    : null

/**
 * What was set aside goes back if nothing comes of it. A transaction of `work` that settles it says so by `settling`: its
 * commit may have come about though it failed, and then nothing goes back.
 */
export async function orGiveBack<T>(
  c: Context<Env>,
  { ledger }: Service,
  reservation: Reservation | null,
  work: (settling: (trx: Trx) => Promise<void>) => Promise<T>,
): Promise<T> {
  let mark: string | null = null
  try {
    return await work(async trx => {
      mark = reservation === null ? null : await commitMark(trx)
    })
  } catch (error) {
    if (reservation !== null) ledger.giveBack(c.get('caller').account.id, reservation, mark)
    throw error
  }
}

/** The question itself goes on when its client goes away: others may wait for it, and its answer is remembered. */
async function verify(c: Context<Env>, service: Service, asked: Asked): Promise<Result> {
  // A remembered answer costs little: it need not wait until mail servers may be asked.
  const known = await getCached(service, asked)
  if (known !== null) return known
  const { email, checkSmtp, forceRefresh } = asked
  const ask = () => unlessAborted(c, service.engine.verify(email, { checkSmtp, forceRefresh }))
  return stateOf(service).admissions.run(c, ask)
}

/** It is durable before it is answered; with an Idempotency-Key the answer is, too. */
async function settled(
  c: Context<Env>,
  service: Service,
  { result, reservation }: { readonly result: Result; readonly reservation: Reservation | null },
  present: (result: Result) => object,
): Promise<Response> {
  const origin = originOf(c)
  const entry = { result }
  const body = present(result)
  if ((c.get('replay') ?? null) === null) {
    await service.ledger.settle({ ...origin, source: 'single', reservation, entry })
    return c.json(body)
  }
  const period = reservation?.period ?? null
  const released = reservation?.amount ?? 0
  return orGiveBack(c, service, reservation, settling =>
    commitResponse(c, service, async trx => {
      await settling(trx)
      const held = { period, released, member: reservation?.member ?? null }
      const entries = { ...origin, source: 'single' as const, jobId: null, ...held }
      await service.ledger.record(trx, { ...entries, entries: [entry] })
      return { status: 200, body }
    }),
  )
}

/** Whose verification it is, for the books. */
export function originOf(c: Context<Env>) {
  const { account, key } = c.get('caller')
  return { accountId: account.id, keyId: key.id, sandbox: c.get('sandbox') }
}
