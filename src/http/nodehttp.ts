/**
 * What src calls of node:http. An import of that module evaluates each of its getters, among them WebSocket's, for which
 * Node loads undici: a tenth of the time of any start.
 */
export const { createServer, request } = process.getBuiltinModule('node:http')
