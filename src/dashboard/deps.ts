
import type { Scope } from '../accounts/scope.ts'
import type { Database } from '../db/database.ts'
import type { ReadDisk } from '../jobs/upload/store-upload.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Random } from '../platform/random.ts'

import type { HealthSource } from './health/source.ts'
import type { Html } from './page/html.ts'
import type { FirstKeys } from './session/setup.ts'

export type AskOptions = {
  /** GET when left out, POST where there is a body. */
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** What is undefined or null is left out. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined | null>>
  /** Sent as JSON. */
  readonly body?: object
  readonly sandbox?: boolean
  /** Of a form that is sent twice, as by a double click, only one has an effect: both are answered as that one is. */
  readonly once?: string | undefined
}

/** Our own HTTP API, asked as the key of a session: its scopes, limits and errors are those of everybody. */
export interface Api {
  /** The body of the answer, of a type from `client/types.ts`; throws ApiProblem where the API says no. */
  ask<T>(path: string, options?: AskOptions): Promise<T>
  /** The answer as it comes, a refusal too: for files and streams. */
  fetch(path: string, init?: RequestInit): Promise<Response>
}


/** Who is signed in, by the key that they signed in with. */
export type SignedIn = {
  readonly sessionId: string
  /** The end of the grace period of the key's text that they signed in with, epoch ms; null: it was not replaced. */
  readonly secretExpiresAt: number | null
  /** To be sent along with whatever changes something. */
  readonly csrf: string
  readonly keyId: string
  readonly keyName: string
  readonly scopes: readonly Scope[]
  readonly accountId: string
  readonly accountName: string
  readonly plan: string
  /** Whether the account is that of whoever runs the service. */
  readonly isAdmin: boolean
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
  /** Free space on the disk of the data directory, where uploads are stored. */
  readonly disk: ReadDisk
  /** Data of the Health page. */
  readonly health: HealthSource
  /** The API key created at the first start, shown once. */
  readonly firstKeys: FirstKeys
}

export type ApiApp = {
  fetch(request: Request, bindings: ApiBindings): Response | Promise<Response>
}

/** The dashboard session on whose behalf the API is called. */
export type AskingSession = {
  readonly keyId: string
  readonly sessionId: string
  /** End of the grace period of a rotated key secret, epoch ms; null if it was not rotated. */
  readonly secretExpiresAt: number | null
}

/** Data passed in process beside a request; a network client cannot set it. */
export type ApiBindings = {
  readonly incoming?: unknown
  readonly session: AskingSession
}

export type DashboardSettings = {
  /** Without a trailing slash. */
  readonly baseUrl: string
  readonly version: string
  readonly dataDir: string
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
    /** Alerts above the content of every page. */
    banners: () => Promise<readonly Html[]>
  }
}

/** Node's response object, on which earlier middleware has set headers. */
export type Outgoing = {
  removeHeader(name: string): void
  readonly headersSent: boolean
  /** Closes the connection, even in the middle of a response. */
  destroy(): unknown
}
