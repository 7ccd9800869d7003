import type { Database } from '../db/database.ts'
import type { ReadDisk } from '../jobs/upload/store-upload.ts'
import type { Clock } from '../platform/clock.ts'
import type { Log } from '../platform/log.ts'
import type { Random } from '../platform/random.ts'
import type { Api } from './api.ts'
import type { HealthSource } from './health/source.ts'
import type { Html } from './page/html.ts'
import type { FirstKeys } from './session/setup.ts'
import type { SignedIn } from './session/signed-in.ts'

/** What the dashboard works with; built in `wire-service.ts`, and by tests with fakes. */
export type DashboardDeps = {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly database: Database
  /** Answers requests of the API, in this process. */
  readonly app: ApiApp
  readonly settings: DashboardSettings
  /** The disk of the data directory, where lists are stored. */
  readonly disk: ReadDisk
  /** What whoever runs the service should know. */
  readonly health: HealthSource
  /** The key of the first start, to be shown once. */
  readonly firstKeys: FirstKeys
}

export type ApiApp = {
  fetch(request: Request, bindings: ApiBindings): Response | Promise<Response>
}

/** A session as the API knows it. */
export type AskingSession = {
  readonly keyId: string
  readonly sessionId: string
  /** The end of the grace period of a key text that was replaced, epoch ms; null: it was not. */
  readonly secretExpiresAt: number | null
}

/** What comes along with a request beside its text, and cannot come over the network. */
export type ApiBindings = {
  readonly incoming?: unknown
  readonly session: AskingSession
}

export type DashboardSettings = {
  /** Without a slash at its end. */
  readonly baseUrl: string
  readonly version: string
  readonly dataDir: string
}

/** What the steps before a page found out; pages read it with `c.get(…)`. */
export type Env = {
  Bindings: {
    readonly incoming?: { readonly socket?: unknown }
    readonly outgoing?: Outgoing
  }
  Variables: {
    /** Of the edge of the service: the client's address, behind trusted proxies too. */
    ip: string
    requestId: string
    /** Who is signed in; set for every page but those of signing in. */
    user: SignedIn
    /** Our API, as the key of the session sees it. */
    api: Api
    /** What every page tells above its own matter. */
    banners: () => Promise<readonly Html[]>
  }
}

/** Node's own response, where the edge of the service laid headers ready. */
export type Outgoing = {
  removeHeader(name: string): void
  readonly headersSent: boolean
  /** Ends the connection, whatever was sent of the answer. */
  destroy(): unknown
}
