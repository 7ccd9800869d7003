import { OpenAPIHono } from '@hono/zod-openapi'
import type { Env } from './context.ts'
import { faultOf } from './error/fault.ts'

/** A room of the API, to be filled by `openapi(route, handler)`: what does not fit its schemas is told as an ApiError. */
export const newRouter = () =>
  new OpenAPIHono<Env>({
    // `/v1/jobs/` is `/v1/jobs`.
    strict: false,
    defaultHook(outcome) {
      if (outcome.success) return
      // What was given stands there, though its type does not say so.
      const given = 'data' in outcome ? outcome.data : undefined
      throw faultOf(outcome.target, outcome.error.issues, given)
    },
  })
