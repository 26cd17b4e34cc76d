"""The messages that a kubelet and its plugins exchange, as far as they are used here."""

from tests.rig.nodes.wire import Api, Method

# https://github.com/kubernetes/kubelet/blob/v0.34.3/pkg/apis/deviceplugin/v1beta1/api.proto
DEVICE_PLUGIN = Api(
    package="v1beta1",
    messages={
        "Empty": {},
        "DevicePluginOptions": {
            "pre_start_required": (1, "bool"),
            "get_preferred_allocation_available": (2, "bool"),
        },
        "RegisterRequest": {
            "version": (1, "string"),
            "endpoint": (2, "string"),
            "resource_name": (3, "string"),
            "options": (4, "DevicePluginOptions"),
        },
        "NUMANode": {"ID": (1, "int64")},
        "TopologyInfo": {"nodes": (1, "*NUMANode")},
        "Device": {"ID": (1, "string"), "health": (2, "string"), "topology": (3, "TopologyInfo")},
        "ListAndWatchResponse": {"devices": (1, "*Device")},
        "ContainerAllocateRequest": {"devices_ids": (1, "*string")},
        "AllocateRequest": {"container_requests": (1, "*ContainerAllocateRequest")},
        "Mount": {"container_path": (1, "string"), "host_path": (2, "string"), "read_only": (3, "bool")},
        "ContainerAllocateResponse": {"envs": (1, "map"), "mounts": (2, "*Mount"), "annotations": (4, "map")},
        "AllocateResponse": {"container_responses": (1, "*ContainerAllocateResponse")},
    },
    services={
        "Registration": {"Register": Method("RegisterRequest", "Empty")},
        "DevicePlugin": {
            "GetDevicePluginOptions": Method("Empty", "DevicePluginOptions"),
            "ListAndWatch": Method("Empty", "ListAndWatchResponse", streams=True),
            "Allocate": Method("AllocateRequest", "AllocateResponse"),
        },
    },
)

# https://github.com/kubernetes/kubelet/blob/v0.34.3/pkg/apis/pluginregistration/v1/api.proto
PLUGIN_REGISTRATION = Api(
    package="pluginregistration",
    messages={
        "InfoRequest": {},
        "PluginInfo": {
            "type": (1, "string"),
            "name": (2, "string"),
            "endpoint": (3, "string"),
            "supported_versions": (4, "*string"),
        },
        "RegistrationStatus": {"plugin_registered": (1, "bool"), "error": (2, "string")},
        "RegistrationStatusResponse": {},
    },
    services={
        "Registration": {
            "GetInfo": Method("InfoRequest", "PluginInfo"),
            "NotifyRegistrationStatus": Method("RegistrationStatus", "RegistrationStatusResponse"),
        }
    },
)

# https://github.com/container-storage-interface/spec/blob/v1.9.0/csi.proto; a message within another one is called
# `<outer>_<inner>` here. `Bool` is google.protobuf.BoolValue.
CSI = Api(
    package="csi.v1",
    messages={
        "GetPluginInfoRequest": {},
        "GetPluginInfoResponse": {"name": (1, "string"), "vendor_version": (2, "string"), "manifest": (3, "map")},
        "GetPluginCapabilitiesRequest": {},
        "PluginCapability_Service": {"type": (1, "int32")},
        "PluginCapability": {"service": (1, "PluginCapability_Service")},
        "GetPluginCapabilitiesResponse": {"capabilities": (1, "*PluginCapability")},
        "ProbeRequest": {},
        "Bool": {"value": (1, "bool")},
        "ProbeResponse": {"ready": (1, "Bool")},
        "VolumeCapability_BlockVolume": {},
        "VolumeCapability_MountVolume": {
            "fs_type": (1, "string"),
            "mount_flags": (2, "*string"),
            "volume_mount_group": (3, "string"),
        },
        "VolumeCapability_AccessMode": {"mode": (1, "int32")},
        "VolumeCapability": {
            "block": (1, "VolumeCapability_BlockVolume"),
            "mount": (2, "VolumeCapability_MountVolume"),
            "access_mode": (3, "VolumeCapability_AccessMode"),
        },
        "NodePublishVolumeRequest": {
            "volume_id": (1, "string"),
            "publish_context": (2, "map"),
            "staging_target_path": (3, "string"),
            "target_path": (4, "string"),
            "volume_capability": (5, "VolumeCapability"),
            "readonly": (6, "bool"),
            "volume_context": (8, "map"),
        },
        "NodePublishVolumeResponse": {},
        "NodeUnpublishVolumeRequest": {"volume_id": (1, "string"), "target_path": (2, "string")},
        "NodeUnpublishVolumeResponse": {},
        "NodeGetCapabilitiesRequest": {},
        "NodeServiceCapability_RPC": {"type": (1, "int32")},
        "NodeServiceCapability": {"rpc": (1, "NodeServiceCapability_RPC")},
        "NodeGetCapabilitiesResponse": {"capabilities": (1, "*NodeServiceCapability")},
        "NodeGetInfoRequest": {},
        "NodeGetInfoResponse": {"node_id": (1, "string"), "max_volumes_per_node": (2, "int64")},
        "NodeGetVolumeStatsRequest": {"volume_id": (1, "string"), "volume_path": (2, "string")},
        "NodeGetVolumeStatsResponse": {},
    },
    services={
        "Identity": {
            "GetPluginInfo": Method("GetPluginInfoRequest", "GetPluginInfoResponse"),
            "GetPluginCapabilities": Method("GetPluginCapabilitiesRequest", "GetPluginCapabilitiesResponse"),
            "Probe": Method("ProbeRequest", "ProbeResponse"),
        },
        "Node": {
            "NodeGetInfo": Method("NodeGetInfoRequest", "NodeGetInfoResponse"),
            "NodeGetCapabilities": Method("NodeGetCapabilitiesRequest", "NodeGetCapabilitiesResponse"),
            "NodePublishVolume": Method("NodePublishVolumeRequest", "NodePublishVolumeResponse"),
            "NodeUnpublishVolume": Method("NodeUnpublishVolumeRequest", "NodeUnpublishVolumeResponse"),
            "NodeGetVolumeStats": Method("NodeGetVolumeStatsRequest", "NodeGetVolumeStatsResponse"),
        },
    },
)
