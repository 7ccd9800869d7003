import type { LogEvent } from '../platform/log.ts'
import { loopFailure } from '../platform/loop.ts'
import type { MetricInfo } from '../platform/metric.ts'

/** Log events of the HTTP API and its server. */
export const API_LOG = {
  request: {
    level: 'info',
    message: 'request',
    fields: ['requestId', 'method', 'route', 'status', 'ms', 'keyId', 'sessionId', 'poll'],
  },
  quietRequest: {
    level: 'debug',
    message: 'request',
    fields: ['requestId', 'method', 'route', 'status', 'ms', 'keyId', 'sessionId', 'poll'],
  },
  requestFailed: {
    level: 'error',
    message: 'a request failed',
    fields: ['requestId', 'code', 'why', 'stack'],
  },
  requestsRefused: { level: 'warn', message: 'requests are refused', fields: ['why'] },
  requestNotAnswered: {
    level: 'error',
    message: 'a request could not be answered',
    fields: ['why'],
  },
  mcpRequestRefused: { level: 'debug', message: 'an MCP request was refused', fields: ['why'] },
  responseAborted: { level: 'warn', message: 'response aborted', fields: ['requestId', 'why'] },
  refusalNotAudited: {
    level: 'warn',
    message: 'a refused request could not be written to the audit log',
    fields: ['why'],
  },
  lastUsedNotWritten: {
    level: 'warn',
    message: 'last-used times of keys could not be written',
    fields: ['why'],
  },
  databaseNotResponding: {
    level: 'error',
    message: 'the database does not answer',
    fields: ['why'],
  },
  databaseMetricsOmitted: {
    level: 'warn',
    message: 'database metrics are omitted',
    fields: ['why'],
  },
  serverError: { level: 'error', message: 'HTTP server error', fields: ['why'] },
  connectionsRefused: {
    level: 'warn',
    message: 'connections refused',
    fields: ['connections', 'open'],
  },
  certificateReloaded: { level: 'info', message: 'certificate reloaded', fields: ['file'] },
  certificateNotReloaded: {
    level: 'error',
    message: 'certificate not reloaded, the current one stays in use: …',
    fields: [],
  },
  certificateExpired: {
    level: 'warn',
    message: 'the certificate has expired: clients will refuse it',
    fields: ['file', 'until'],
  },
  certificateExpiresSoon: {
    level: 'warn',
    message: 'the certificate expires soon',
    fields: ['file', 'until'],
  },
  certificateCheckFailed: loopFailure('certificate check failed'),
} as const satisfies Readonly<Record<string, LogEvent>>

/** Metrics of the HTTP API, read by `api/metrics.ts`. docs/metrics.md lists them. */
export const API_METRICS = {
  requests: {
    name: 'ev_http_requests_total',
    help: 'Answered requests, by route and status',
    labelNames: ['method', 'route', 'status'],
  },
  durations: {
    name: 'ev_http_request_duration_seconds',
    help: 'Time from a request to the start of its response, by route',
    labelNames: ['method', 'route'],
  },
  refusals: {
    name: 'ev_limit_refusals_total',
    help: 'Requests refused by a limit, by limit',
    labelNames: ['limit'],
  },
  auditOmissions: {
    name: 'ev_audit_entries_omitted_total',
    help: 'Requests refused for lack of rights that are not in the audit log, which has at most 20 of an account in an hour',
  },
  verificationsInFlight: {
    name: 'ev_verifications_in_flight',
    help: 'Verification requests in flight',
  },
  buildInfo: {
    name: 'ev_build_info',
    help: 'Always 1, with the version of ev and of Node',
    labelNames: ['version', 'node'],
  },
} as const satisfies Readonly<Record<string, MetricInfo>>
