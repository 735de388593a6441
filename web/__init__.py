"""The doors of the hub: pages, REST, and the two Socket.IO namespaces."""
