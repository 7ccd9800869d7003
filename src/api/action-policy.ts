import type { Context } from 'hono'
import type { ActionPolicy } from '../engine/verdict/action.ts'
import type { ApiDeps } from './api-deps.ts'
import type { Env } from './context.ts'

export type ActionPolicyDeps = { readonly settings: Pick<ApiDeps['settings'], 'actionPolicy'> }

/** Returns the policy that decides about the actions in a response: that of the account, if it has one. */
export const getActionPolicy = (c: Context<Env>, { settings }: ActionPolicyDeps): ActionPolicy =>
  c.get('caller').account.action_policy ?? settings.actionPolicy
