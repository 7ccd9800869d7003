import type { Context, MiddlewareHandler } from 'hono'
import type { Reservation } from '../../accounts/credits/usage-ledger.ts'
import { abortable } from '../../engine/deadline.ts'
import { sandboxResult } from '../../engine/sandbox.ts'
import { sandboxSteps } from '../../engine/sandbox-steps.ts'
import type { Step } from '../../engine/step.ts'
import { isoTime, presentResult } from '../../engine/verdict/present-result.ts'
import type { Result } from '../../engine/verdict/verdict.ts'
import type { Env } from '../context.ts'
import { ApiError } from '../errors/api-error.ts'
import { logError } from '../errors/errors.ts'
import { eventStream, type StreamEvent } from '../event-stream.ts'
import type { StepBody } from '../schemas/step.ts'
import type { Service } from '../service.ts'
import { stateOf } from '../state.ts'
import { type Asked, getCached, orGiveBack, originOf } from './ask.ts'
import { reserveOrGetCached } from './credits.ts'

/** Whether the steps are asked for, as events, and not the result alone. */
export const wantsEvents = (c: Context<Env>) =>
  /\btext\/event-stream\b/i.test(c.req.header('Accept') ?? '')

/** Refuses an Idempotency-Key beside them: nothing is created, and what happened cannot happen again. */
export const noKeyForEvents: MiddlewareHandler<Env> = async (c, next) => {
  if (wantsEvents(c) && c.req.header('Idempotency-Key') !== undefined) {
    throw new ApiError(
      'invalid_request',
      'With Accept: text/event-stream no Idempotency-Key is taken: leave it out and ask again, as an answer that is known costs nothing.',
    )
  }
  await next()
}

/** Verifies one address for somebody who watches: each step as it happens, then the result, or what went wrong. */
export async function followOne(
  c: Context<Env>,
  service: Service,
  asked: Asked,
): Promise<Response> {
  // Before the stream begins, as a refusal has a status of its own.
  const steps: Step[] = []
  const { reservation, known } = c.get('sandbox')
    ? { reservation: null, known: null }
    : await reserveOrGetCached(c, service, 1, () =>
        getCached(service, asked, step => steps.push(step)),
      )
  return eventStream(c, service, gone => {
    const sent = createChannel<StreamEvent>()
    const cached = known === null ? null : { result: known, steps }
    void follow(c, service, { asked, reservation, cached, gone, send: sent.put }).finally(sent.end)
    return sent
  })
}

type Following = {
  readonly asked: Asked
  readonly reservation: Reservation | null
  /** The remembered answer, where no credit is left to ask with. */
  readonly cached: { readonly result: Result; readonly steps: readonly Step[] } | null
  /** Aborts when nobody listens any more. */
  readonly gone: AbortSignal
  readonly send: (event: StreamEvent) => void
}

/** Never rejects. */
async function follow(c: Context<Env>, service: Service, following: Following): Promise<void> {
  const { reservation, gone, send } = following
  const state = stateOf(service)
  // The guard counts a request until its answer begins, which was just now.
  state.verifying++
  const endRequest = service.priority.startRequest()
  try {
    const result = await orGiveBack(c, service, reservation, () => verify(c, service, following))
    const entry = { result }
    await service.ledger.settle({ ...originOf(c), source: 'single', reservation, entry })
    const mark = c.get('sandbox') ? { sandbox: true } : {}
    send({ event: 'result', data: { ...presentResult(result, ['flags', 'evidence']), ...mark } })
  } catch (error) {
    if (!gone.aborted) send({ event: 'error', data: logError(c, service.log, error).body })
  } finally {
    state.verifying--
    endRequest()
  }
}

/** The question itself goes on when its client goes away, as its answer is remembered. */
async function verify(
  c: Context<Env>,
  service: Service,
  { asked, cached, gone, send }: Following,
): Promise<Result> {
  const onStep = (step: Step) => send({ event: 'step', data: presentStep(step) })
  if (cached !== null) {
    cached.steps.forEach(onStep)
    return cached.result
  }
  const { email, checkSmtp, forceRefresh } = asked
  if (!c.get('sandbox')) {
    const ask = () => service.engine.verify(email, { checkSmtp, forceRefresh, onStep })
    return abortable(stateOf(service).admissions.run(c, ask), gone)
  }
  const result = sandboxResult(service.clock, email)
  sandboxSteps(result).forEach(onStep)
  return result
}

/** What is put in at one place and taken out at another, in its order. Whoever puts in keeps to a bound. */
type Channel<T> = AsyncIterable<T> & {
  /** What comes after the end is dropped. */
  put(value: T): void
  /** What was put in before can still be taken out. */
  end(): void
}

/** For one who takes out. */
function createChannel<T>(): Channel<T> {
  const values: T[] = []
  let isDone = false
  let wake = () => {}
  return {
    put(value) {
      if (!isDone) values.push(value)
      wake()
    },
    end() {
      isDone = true
      wake()
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        yield* values.splice(0)
        if (values.length > 0) continue
        if (isDone) return
        await new Promise<void>(resolve => {
          wake = resolve
        })
      }
    },
  }
}

/** A step as the API tells it; this file alone knows the names of its fields. */
function presentStep(step: Step): StepBody {
  switch (step.kind) {
    case 'syntax': {
      const { ok, address, suggestion, text } = step
      return { step: 'syntax', ok, address, did_you_mean: suggestion, text }
    }
    case 'domain': {
      const { ok, route, hosts, operator, text } = step
      return { step: 'domain', ok, kind: route, hosts: [...hosts], operator, text }
    }
    case 'server': {
      const { host, ip, ok, text } = step
      return { step: 'server', host, ip, ok, text }
    }
    case 'line':
      return { step: 'line', text: step.text }
    case 'cached':
      return { step: 'cached', checked_at: isoTime(step.checkedAt), text: step.text }
  }
}
