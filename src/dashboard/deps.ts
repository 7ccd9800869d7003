import type { Scope } from '../accounts/key-rights.ts'
import type { IdentityProvider } from '../accounts/people/identity-provider.ts'
import type { PasswordHasher } from '../accounts/people/password.ts'
import type { Person } from '../accounts/people/person-store.ts'
import type { LimitStore } from '../accounts/rate-limits/windows.ts'
import type { DashboardSession } from '../api/context.ts'
import type { RefusedRequests } from '../api/middleware/refused-requests.ts'
import type { Webhook } from '../client/types.ts'
import type { Database } from '../db/database.ts'
import type { ReadDisk } from '../jobs/import/store-upload.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Random } from '../platform/random.ts'
import type { SecretBox } from '../platform/secret-box.ts'
import type { HealthSource } from './health/source.ts'
import type { Html } from './page/html.ts'
import type { FirstKeys } from './session/setup.ts'

export type AskOptions = {
  /** Defaults to POST if there is a body, else GET. */
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Parameters that are undefined or null are omitted. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined | null>>
  /** Serialized as JSON. */
  readonly body?: object
  readonly sandbox?: boolean
  /** Idempotency key: a form submitted twice (a double click) takes effect once. */
  readonly once?: string | undefined
}

/**
 * The HTTP API called with the API key of a session: same scopes, limits and errors as any client.
 */
export interface Api {
  /**
   * Returns the response body, a type of `client/types.ts`; throws ApiProblem on an error status.
   */
  ask<T>(path: string, options?: AskOptions): Promise<T>
  /** Returns the raw response, error responses included: for files and streams. */
  fetch(path: string, init?: RequestInit): Promise<Response>
}

/** The signed-in user: the session and the key or the person that started it. */
export type SignedIn = {
  readonly sessionId: string
  /** Epoch ms. */
  readonly signedInAt: number
  /** End of the grace period of a rotated key secret, epoch ms; null if it was not rotated. */
  readonly secretExpiresAt: number | null
  /** The CSRF token, required by state-changing requests. */
  readonly csrf: string
  /** ID of the key or of the person. */
  readonly keyId: string
  /** Name of the key or of the person. */
  readonly name: string
  /** Null for a session that a key started. */
  readonly person: Person | null
  readonly scopes: readonly Scope[]
  /** Whether all requests of the key are in the sandbox. */
  readonly isTest: boolean
  readonly accountId: string
  readonly accountName: string
  /** Recipient of the emails about lists. */
  readonly accountEmail: string | null
  readonly plan: string
  /** Whether the account may open the Health page. */
  readonly isAdmin: boolean
  /** Whether the account requires a second factor of people with a password. */
  readonly isTwoFactorRequired: boolean
  /** Whether the person may only set up a second factor. */
  readonly lacksSecondFactor: boolean
}

/** Dependencies of the dashboard, composed in `compose/service.ts`. */
export type DashboardDeps = {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly database: Database
  /** The API app, called in process. */
  readonly app: ApiApp
  readonly settings: DashboardSettings
  /** Counts failed sign-ins. */
  readonly limits: LimitStore
  /** Hashes and verifies the passwords of people. */
  readonly passwords: PasswordHasher
  /** Null: people sign in with passwords only. */
  readonly identityProvider: IdentityProvider | null
  /** Encrypts second factors and signs what browsers keep during a sign-in. */
  readonly secretBox: SecretBox
  /** Free space on the disk of the data directory, where uploads are stored. */
  readonly disk: ReadDisk
  /** Data of the Health page. */
  readonly health: HealthSource
  /** Writes requests that a session has no right to to the audit log. */
  readonly refusedRequests: RefusedRequests
  /** The API key created at the first start, shown once. */
  readonly firstKeys: FirstKeys
}

type ApiApp = {
  fetch(request: Request, bindings: ApiBindings): Response | Promise<Response>
}

/** Data passed in process beside a request; a network client cannot set it. */
export type ApiBindings = {
  readonly incoming?: unknown
  /** The dashboard session on whose behalf the API is called. */
  readonly session: DashboardSession
}

type DashboardSettings = {
  /** Without a trailing slash. */
  readonly baseUrl: string
  readonly version: string
  readonly dataDir: string
}

/** Problems of the account and the service, for the overview, the affected pages and the sidebar. */
export type Alerts = {
  /** Notices above the content of this page. */
  readonly notices: readonly Html[]
  /** Webhooks that fail, or that ev disabled; empty if the key may not read webhooks. */
  readonly failingWebhooks: readonly Webhook[]
  /**
   * Whether an admin should open the Health page: no address can be verified, or a provider blocks
   * this service.
   */
  readonly needsHealth: boolean
}

/** Values that middleware sets and pages read with `c.get(…)`. */
export type Env = {
  Bindings: {
    readonly incoming?: { readonly socket?: unknown }
    readonly outgoing?: Outgoing
  }
  Variables: {
    /** The client's IP address, resolved through trusted proxies. */
    ip: string
    requestId: string
    /** The signed-in user; set on every protected page. */
    user: SignedIn
    /** The API, called with the key of the session. */
    api: Api
    /** Returns the current alerts; they are read once for each request. */
    alerts: () => Promise<Alerts>
  }
}

/** Node's response object, on which earlier middleware has set headers. */
type Outgoing = {
  removeHeader(name: string): void
  readonly headersSent: boolean
  /** Closes the connection, even in the middle of a response. */
  destroy(): unknown
}
