import { OpenAPIHono } from '@hono/zod-openapi'
import { cleanText } from '../base/text.ts'
import type { ApiCode } from './api-error.ts'
import { ApiError, STATUS } from './api-error.ts'
import type { Env } from './context.ts'

/** A room of the API, to be filled by `openapi(route, handler)`: what does not fit its schemas is told as an ApiError. */
export const newRouter = () =>
  new OpenAPIHono<Env>({
    // `/v1/jobs/` is `/v1/jobs`.
    strict: false,
    defaultHook(outcome) {
      if (!outcome.success) throw faultOf(outcome.target, outcome.error.issues)
    },
  })

type Issue = {
  readonly message: string
  readonly path: readonly PropertyKey[]
  /** A schema that wants a code of its own says so: `refine(…, { params: { code: 'empty_list' } })`. */
  readonly params?: unknown
}

/** The first fault is told; the others are seen when that one is set right. */
export function faultOf(target: string, issues: readonly Issue[]): ApiError {
  const issue = issues[0]
  if (issue === undefined) return new ApiError('invalid_request', 'The request is not valid')
  const place = issue.path.map(String).join('.')
  const where =
    place === '' ? PLACES[target] : `"${place}"${target === 'json' ? '' : ` (${target})`}`
  return new ApiError(codeOf(issue), cleanText(`${where ?? 'The request'}: ${issue.message}`))
}

const PLACES: Readonly<Record<string, string>> = {
  json: 'The body',
  query: 'The query',
  param: 'The path',
  header: 'The headers',
}

function codeOf({ params }: Issue): ApiCode {
  const code =
    typeof params === 'object' && params !== null && 'code' in params ? params.code : null
  return typeof code === 'string' && code in STATUS ? (code as ApiCode) : 'invalid_request'
}
