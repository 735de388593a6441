"""A folder put first on the path of scripts that `torchvitals run` starts: see sitecustomize."""
