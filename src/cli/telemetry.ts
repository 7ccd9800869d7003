import type { LogEvent } from '../platform/log.ts'

/** Log events of the commands that run until they are stopped. */
export const CLI_LOG = {
  listening: { level: 'info', message: 'listening on …', fields: ['baseUrl', 'tls'] },
  firstKeyPrinted: {
    level: 'info',
    message: 'The first key, with all scopes, was printed to stdout. It is not shown again.',
    fields: [],
  },
  dashboardAt: { level: 'info', message: 'Dashboard: …/', fields: [] },
  exampleRequest: { level: 'info', message: 'Verify an address: …', fields: [] },
  documentationAt: { level: 'info', message: 'API documentation: …/docs', fields: [] },
  workerStarted: {
    level: 'info',
    message: 'started',
    fields: ['member', 'baseUrl', 'egresses', 'concurrency'],
  },
  healthAt: { level: 'info', message: 'health and metrics on …', fields: [] },
  stopping: { level: 'info', message: 'stopping: …', fields: ['signal'] },
  stopped: { level: 'info', message: 'stopped', fields: [] },
  forcedExit: { level: 'warn', message: 'forced exit', fields: ['signal'] },
  slowExit: { level: 'warn', message: 'forced exit; leases will expire', fields: [] },
  internalError: { level: 'error', message: 'internal error; exiting', fields: ['why', 'stack'] },
  listsReloaded: { level: 'info', message: 'configuration lists reloaded', fields: [] },
  listsNotReloaded: { level: 'error', message: 'configuration lists not reloaded. …', fields: [] },
  baseUrlChanged: {
    level: 'warn',
    message: 'the base URL has changed; other processes use the new one after a restart',
    fields: ['before', 'now'],
  },
  waitingForService: {
    level: 'info',
    message: 'no "ev serve" has used this database yet; waiting for the first one',
    fields: [],
  },
  databaseNotAvailable: {
    level: 'warn',
    message: 'the database is not available; retrying',
    fields: ['why'],
  },
  secretReplaced: {
    level: 'warn',
    message: 'replaced the secret of the cluster: no webhook and no other process uses the old one',
    fields: [],
  },
  secretChanged: {
    level: 'warn',
    message:
      'the secret has changed: webhook secrets and stored responses to Idempotency-Keys cannot be decrypted. Restore the file "secret" in the data directory, or the earlier value of EV_SECRET or EV_SECRET_FILE',
    fields: [],
  },
  planMissing: {
    level: 'warn',
    message:
      'the plan "…" does not exist; the limits of the Free plan apply to the account. Add it to "plans" in the config file, or change the plan with "ev accounts set-plan"',
    fields: ['accountId'],
  },
  openFilesLow: { level: 'warn', message: 'the limit of open files is …', fields: [] },
} as const satisfies Readonly<Record<string, LogEvent>>
