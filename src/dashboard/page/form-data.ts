import type { Context } from 'hono'
import type { ErrorBody } from '../../client/types.ts'
import { ApiProblem } from '../api.ts'
import type { Env } from '../deps.ts'

/** The fields of a form that was sent. */
export type SubmittedForm = {
  /** What was written into a field; empty where it is not there. */
  readonly text: (name: string) => string
  /** What was chosen of several, such as boxes. */
  readonly all: (name: string) => readonly string[]
}

/** Reads a form. */
export async function sentForm(c: Context<Env>): Promise<SubmittedForm> {
  const fields = await c.req.parseBody({ all: true })
  const all = (name: string) =>
    [fields[name] ?? []].flat().filter(value => typeof value === 'string')
  return { all, text: name => all(name)[0]?.trim() ?? '' }
}

/** What the API has against a form, which is shown again with it; any other fault is thrown on. */
export function problemWith(error: unknown): ApiProblem {
  if (!(error instanceof ApiProblem) || error.status >= 500) throw error
  const { status, code } = error
  const sentence = OF_FORMS[code]
  return sentence === undefined ? error : new ApiProblem(status, { error: sentence, code })
}

/** Where the API speaks of fields that forms do not show. */
const OF_FORMS: Partial<Record<ErrorBody['code'], string>> = {
  last_key: 'This is the last key of the account. Revoke it again, below, if you mean it.',
  idempotency_in_progress:
    'This form was sent a moment ago and is being answered. Send it again to see what came of it.',
  idempotency_mismatch:
    'This form made something already, with what it said before. Send it again to make another one.',
}
