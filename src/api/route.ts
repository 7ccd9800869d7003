import { OpenAPIHono, type RouteConfig, type RouteHandler, z } from '@hono/zod-openapi'
import type { Handler } from 'hono'
import type { Scope } from '../accounts/key-rights.ts'
import type { ApiDeps } from './api-deps.ts'
import type { Env } from './context.ts'
import type { ApiCode } from './errors/api-error.ts'
import { FixedPathRouter } from './fixed-path-router.ts'
import { type GuardRule, type Protect, takesSandbox } from './middleware/guard.ts'
import type { Counts } from './middleware/rate-limit-buckets.ts'
import { toRoutePath } from './middleware/route-table.ts'
import type { Differing } from './schemas/answers.ts'
import { ANY_WITH_KEY, errorResponses } from './schemas/error.ts'
import {
  type RequestHeader,
  type ResponseHeader,
  requestHeaderRef,
  responseHeaders,
} from './schemas/headers.ts'

/** Tags of the OpenAPI document by scope. */
const TAGS = {
  'verify:single': 'Verification',
  'verify:bulk': 'Verification',
  'verify:form': 'Verification',
  'jobs:read': 'Jobs',
  'jobs:write': 'Jobs',
  'webhooks:read': 'Webhooks',
  'webhooks:write': 'Webhooks',
  'feedback:read': 'Feedback',
  'feedback:write': 'Feedback',
  'account:read': 'Account',
  'account:write': 'Account',
  'audit:read': 'Account',
  'keys:write': 'Keys',
  'people:write': 'People',
  'accounts:write': 'Accounts',
} as const satisfies Partial<Record<Scope, string>>

type RouteOptions<Params, Query, Body, Answer, Status> = {
  /** `operationId` of the OpenAPI document. */
  readonly id: string
  readonly summary: string
  readonly description?: string
  /** The scope that the key must have; its resource determines the tag. */
  readonly scope: keyof typeof TAGS
  /** Set for a verification: the limit that it counts against. */
  readonly counts?: Counts
  /** Whether a signed link can replace the key. */
  readonly takesLinks?: boolean
  /** Whether the route takes an Idempotency-Key. */
  readonly idempotent?: boolean
  /** Schema of the path parameters. */
  readonly params?: Params
  readonly query?: Query
  readonly body?: RouteBody<Body>
  /** The response of a success, such as `json(Schema, 'The job')`. */
  readonly answer: Answer
  /** 200 if omitted. */
  readonly status?: Status
  /** Headers of every success response of this route in addition to the derived ones. */
  readonly headers?: readonly ResponseHeader[]
  /** Headers of some success responses of this route. */
  readonly optionalHeaders?: readonly ResponseHeader[]
  /** Errors of this route in addition to the derived ones. */
  readonly errors?: readonly ApiCode[]
  /** Whether every value of the parameters has an answer, so that there is no `not_found`. */
  readonly isAlwaysFound?: boolean
  /** See `GuardRule`. */
  readonly beforeKey?: GuardRule['beforeKey']
  readonly beforeBody?: GuardRule['beforeBody']
  readonly afterBody?: GuardRule['afterBody']
}

type RouteBody<Schema> = {
  readonly schema: Schema
  /** The values that differ from the examples of the required fields. */
  readonly example?: Differing<z.input<Schema>>
  /** Largest body in bytes. */
  readonly max: number
  /** See `BodyRule.valuesMax`. */
  readonly valuesMax?: number
  /** See `GuardRule.freeBodyMax`. */
  readonly freeMax?: number
  /** Whether the body may be compressed with gzip (`Content-Encoding`). */
  readonly gzip?: boolean
  /** True if omitted. */
  readonly required?: boolean
  /** The body is a form, which the handler reads as a stream. */
  readonly isForm?: boolean
  /** Whether the body is a list, which takes longer to arrive. */
  readonly isList?: boolean
}

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

type ResponseObject = { readonly description: string; readonly content?: object }

/**
 * The type of a route for `OpenAPIHono.openapi`, which infers the types of its handler. It has no
 * error responses: handlers throw ApiError.
 */
type Route<M extends Method, Path, Params, Query, Body, Answer, Status extends number> = {
  readonly method: Lowercase<M>
  readonly path: Path
  /** Protects the handler by the guard. */
  readonly protect: Protect
  /** Returns the operation of the OpenAPI document. */
  readonly describe: () => RouteConfig
  readonly request: RequestPart<'params', Params> &
    RequestPart<'query', Query> &
    RequestPart<'body', JsonBody<Body>>
  readonly responses: { readonly [S in Status]: Answer }
}

type RequestPart<Name extends string, Part> = [Part] extends [never]
  ? object
  : { readonly [N in Name]: Part }

type JsonBody<Schema> = [Schema] extends [never]
  ? never
  : { readonly content: { readonly 'application/json': { readonly schema: Schema } } }

/**
 * Declares a route that needs a key. Returns its guard and its OpenAPI description, for
 * `router.handle(route, handler)`. It derives:
 *
 * - from `scope`, `counts` and `body`: the security requirement, the tag, and the rule of the guard.
 *   Without `body`, a write accepts an empty JSON object;
 * - from `idempotent`: the Idempotency-Key header;
 * - from `scope`: the X-EV-Sandbox header, and from `counts`: the delay of the sandbox;
 * - the headers of the success response: the common ones, and Idempotency-Replayed if `idempotent`;
 * - the error responses: those of every operation with a key, `not_found` with `params`, those of a
 *   body unless the method is GET, those of an Idempotency-Key, and for a single address the
 *   errors that the sandbox simulates.
 *
 * @example
 * const job = route(service, 'GET /v1/jobs/{id}', {
 *   id: 'getJob',
 *   summary: 'Get a job',
 *   scope: 'jobs:read',
 *   params: jobParams,
 *   answer: json(JobAnswer, 'The job'),
 * })
 * router.handle(job, async c => c.json(await load(c.req.valid('param').id), 200))
 */
export function route<
  const M extends Method,
  const Path extends string,
  const Answer extends ResponseObject,
  Params extends z.ZodObject = never,
  Query extends z.ZodObject = never,
  Body extends z.ZodType = never,
  const Status extends 200 | 201 | 204 = 200,
>(
  { guard }: Pick<ApiDeps, 'guard'>,
  target: `${M} ${Path}`,
  o: RouteOptions<Params, Query, Body, Answer, Status>,
): Route<M, Path, Params, Query, Body, Answer, Status> {
  const [method, path] = target.split(' ') as [M, Path]
  return {
    method: method.toLowerCase(),
    path,
    protect: guard(toRule(target, o)),
    describe: () => describeRoute(method, path, o),
  } as unknown as Route<M, Path, Params, Query, Body, Answer, Status>
}

type AnyOptions = RouteOptions<z.ZodObject, z.ZodObject, z.ZodType, ResponseObject, number>

/** Returns the operation of the OpenAPI document. */
function describeRoute(method: Method, path: string, o: AnyOptions): RouteConfig {
  const { params, query, body } = o
  return {
    method: method.toLowerCase(),
    path,
    operationId: o.id,
    summary: o.summary,
    description: o.description,
    tags: [TAGS[o.scope]],
    security: [{ bearer: [] }],
    parameters: requestHeaders(o).map(requestHeaderRef),
    request: { params, query, body: body && requestBody(body) },
    responses: {
      [o.status ?? 200]: {
        ...o.answer,
        headers: responseHeaders(
          [...(o.headers ?? []), ...(o.idempotent ? (['Idempotency-Replayed'] as const) : [])],
          o.optionalHeaders,
        ),
      },
      ...errorResponses(errorCodes(method, o), {
        isSimulated: o.counts === 'single' || o.counts === 'form',
      }),
    },
  } as unknown as RouteConfig
}

/** Fits an empty JSON object, the only body of a route that declares none. */
const EMPTY_BODY_MAX = 1_024

const toRule = (target: string, { counts = null, body, ...o }: AnyOptions): GuardRule => ({
  target,
  scope: o.scope,
  counts,
  body: {
    kind: body?.isForm ? 'stream' : 'json',
    bytesMax: body?.max ?? EMPTY_BODY_MAX,
    valuesMax: body?.valuesMax,
    gzip: body?.gzip ?? false,
  },
  freeBodyMax: body?.freeMax,
  takesList: body?.isList,
  takesLinks: o.takesLinks === true,
  idempotent: o.idempotent,
  schemas: {
    params: o.params,
    query: o.query,
    body: target.startsWith('GET ') || body?.isForm ? undefined : (body?.schema ?? NO_FIELDS),
  },
  beforeKey: o.beforeKey,
  beforeBody: o.beforeBody,
  afterBody: o.afterBody,
})

/** The body of a route that declares none. */
const NO_FIELDS = z.strictObject({})

const requestHeaders = ({ scope, counts, idempotent }: AnyOptions): RequestHeader[] => [
  ...(takesSandbox(scope) ? (['X-EV-Sandbox'] as const) : []),
  ...(counts ? (['X-EV-Sandbox-Delay'] as const) : []),
  ...(idempotent ? (['Idempotency-Key'] as const) : []),
]

const requestBody = ({ schema, example, required = true, isForm }: RouteBody<z.ZodType>) => ({
  content: {
    [isForm ? 'multipart/form-data' : 'application/json']: {
      schema,
      ...(example === undefined ? {} : { example }),
    },
  },
  required,
})

const errorCodes = (method: Method, { params, errors = [], ...o }: AnyOptions): ApiCode[] => [
  ...ANY_WITH_KEY,
  ...(params === undefined || o.isAlwaysFound ? [] : (['not_found'] as const)),
  ...errors,
  ...(method === 'GET' ? [] : BODY_FAULTS),
  ...(method === 'GET' || o.body?.isForm ? [] : (['invalid_json'] as const)),
  ...(o.idempotent ? REPLAY_FAULTS : []),
]

const BODY_FAULTS = ['request_timeout', 'payload_too_large', 'unsupported_media_type'] as const
const REPLAY_FAULTS = ['idempotency_in_progress', 'idempotency_mismatch'] as const

/**
 * A router whose routes are in the OpenAPI document. Few processes are asked for the document, so
 * operations are described when it is built.
 */
export class Router extends OpenAPIHono<Env> {
  readonly #operations: (() => RouteConfig)[] = []

  /** Adds a route; its guard or middleware validates what the handler reads. */
  handle<R extends RouteConfig & RouteParts>(route: R, handler: RouteHandler<R, Env>): this {
    const { middleware = [], protect = unprotected, describe, ...declared } = route
    this.#operations.push(describe ?? (() => declared as RouteConfig))
    this.on(
      [route.method.toUpperCase()],
      [toRoutePath(route.path)],
      ...[middleware].flat(),
      protect(handler as Handler<Env>),
    )
    return this
  }

  /** Adds the routes of another router. An error handler of that router is ignored. */
  include(part: Router): this {
    for (const { method, path, handler } of part.routes) this.on([method], [path], handler)
    this.#operations.push(...part.#operations)
    return this
  }

  /** Adds the operations of all routes to the OpenAPI document. */
  describeOperations(): void {
    for (const describe of this.#operations.splice(0)) this.openAPIRegistry.registerPath(describe())
  }
}

/** The properties that `route` adds to a declared route. */
type RouteParts = {
  readonly protect?: Protect
  /** Returns the operation of the OpenAPI document; if there is none, the route is the operation. */
  readonly describe?: () => RouteConfig
}

const unprotected: Protect = handler => handler

/** Creates a router, which treats `/v1/jobs/` as `/v1/jobs`. */
export const newRouter = () => new Router({ strict: false, router: new FixedPathRouter() })
