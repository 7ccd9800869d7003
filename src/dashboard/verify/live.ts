import type { Context } from 'hono'
import { VERDICT_BY_REASON } from '../../engine/verdict/reason.ts'
import { toClass } from '../../engine/verdict/verdict.ts'
import type { Env } from '../deps.ts'
import { after, isDone, type Progress, started } from './progress.ts'
import { rows } from './rows.ts'
import { spokenVerdict } from './verdict.ts'
import { type VerifyForm, verifyWithEvents } from './verify-events.ts'

/** What is to be changed in the page. */
export type Change =
  /** A row, in the place of the one with its id. */
  | { readonly html: string }
  /** A line more in the dialogue. */
  | { readonly line: string }
  /** It is over, and this is to be read out. */
  | { readonly over: string }

/** Asks about an address; gives the changes of the page as they come, so that its markup is written in one place. */
export async function* liveChanges(
  c: Context<Env>,
  form: VerifyForm,
  gone: AbortSignal,
): AsyncGenerator<Change> {
  let progress = started(form)
  let shown = await rendered(c, progress)
  yield* shown.map(one => ({ html: one }))
  for await (const events of verifyWithEvents(c.get('api'), form, gone)) {
    progress = after(progress, events)
    const isLine = events.event === 'step' && events.data.step === 'line'
    if (isLine) yield { line: events.data.text }
    const now = await rendered(c, progress)
    // A dialogue has many lines: it is not sent anew for each.
    yield* now
      .filter((one, n) => one !== shown[n] && !(isLine && one.includes(DIALOGUE)))
      .map(one => ({ html: one }))
    shown = now
    if (isDone(progress)) yield { over: spoken(progress) }
  }
}

const DIALOGUE = 'id="step-dialogue"'

const rendered = (c: Context<Env>, progress: Progress): Promise<string[]> =>
  Promise.all(rows(c, progress).map(async row => String(await row)))

function spoken({ result, error }: Progress): string {
  if (result === null) return error?.error ?? ''
  return spokenVerdict(result, toClass(VERDICT_BY_REASON[result.reason]))
}

/** One JSON on each line. The signal that `changes` is given aborts as soon as nobody reads any more. */
export function changesBody(
  changes: (gone: AbortSignal) => AsyncIterator<Change>,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const gone = new AbortController()
  const iterator = changes(gone.signal)
  return new ReadableStream(
    {
      async pull(controller) {
        const { value, done } = await iterator.next()
        if (done) controller.close()
        else controller.enqueue(encoder.encode(`${JSON.stringify(value)}\n`))
      },
      cancel: () => gone.abort(),
    },
    { highWaterMark: 0 },
  )
}
